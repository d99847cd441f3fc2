// Approval cards: sends a decision and puts the card as it is then in its place. A card takes no
// decision in its first half second, nor before all of its diff was seen.
import { nodes } from "notewire/html";
import { post } from "notewire/http";
import { toast } from "notewire/toasts";

const CALM = 500;
const known = new WeakSet();

/** From half a second on a card is calm: nobody can have meant something else. */
function note(root) {
  for (const card of root.querySelectorAll?.(".approval.pending") ?? []) {
    if (known.has(card)) continue;
    known.add(card);
    setTimeout(() => card.classList.add("calm"), CALM);
  }
}

new MutationObserver((changes) => {
  for (const { addedNodes } of changes) for (const node of addedNodes) note(node.parentNode ?? node);
}).observe(document.body, { childList: true, subtree: true });
note(document);

document.addEventListener("scroll", ({ target }) => {
  if (target.matches?.(".approval .diff") && atEnd(target)) target.dataset.seen = "";
}, { capture: true, passive: true });

function atEnd(diff) {
  return diff.scrollHeight - diff.scrollTop - diff.clientHeight < 8;
}

/** Why the card takes no approval yet, if so. */
function tooEarly(card, approves) {
  if (!card.matches(".calm")) return "The card has just appeared: look at it first.";
  const diff = card.querySelector(".diff");
  if (approves && diff && !("seen" in diff.dataset) && !atEnd(diff)) {
    diff.focus();
    return "Scroll to the end of what would change first.";
  }
  return "";
}

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("[data-approval]");
  if (!form) return;
  event.preventDefault();
  const card = form.closest(".approval");
  const decision = event.submitter?.value ?? "deny";
  const early = tooEarly(card, decision !== "deny");
  if (early) return toast(early, { error: true });
  const fields = { ...Object.fromEntries(new FormData(form)), decision };
  const buttons = form.querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  try {
    show(card, (await post(form.action, fields)).html);
  } catch (error) {
    toast(error.message, { error: true });
    if (error.body?.error?.html) show(card, error.body.error.html);
    else for (const button of buttons) button.disabled = false;
  }
});

/** The stream may have replaced the card meanwhile: it is found by its id. */
function show(card, html) {
  document.getElementById(card.id)?.replaceWith(nodes(html));
  const badge = document.getElementById("approvals-badge");
  const left = Number(badge?.textContent) - 1;
  if (badge && !document.getElementById(card.id)?.matches(".pending")) {
    badge.textContent = String(Math.max(0, left));
    badge.hidden = left <= 0;
  }
}
