// Approval cards: sends a word and puts the card as it is then in its place. A call takes no word in
// its first half second, nor an approval before all of its diff was seen. With the focus on a call,
// A approves it and D denies it; elsewhere either key brings the focus to the first that waits.
import { nodes } from "notewire/html";
import { post } from "notewire/http";
import { place } from "notewire/place";
import { toast } from "notewire/toasts";

const CALM = 500;
const PENDING = ".approval.pending";
const KEYS = { a: "approve", d: "deny" };
const known = new WeakSet();

/** From half a second on a call is calm: nobody can have meant something else. */
function note(root) {
  for (const call of root.querySelectorAll?.(PENDING) ?? []) {
    if (known.has(call)) continue;
    known.add(call);
    setTimeout(() => call.classList.add("calm"), CALM);
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

/** Why a call takes no word yet, if so. */
function tooEarly(call, approves) {
  if (!call.matches(".calm")) return "This has just appeared, and nothing was decided. Look at it, then say it again.";
  const diff = call.querySelector(".diff");
  if (approves && diff && !("seen" in diff.dataset) && !atEnd(diff)) {
    diff.focus();
    return "Scroll to the end of what would change first.";
  }
  return "";
}

let told = null;

/** Why a word was not taken, until one is. */
function tell(text) {
  told?.remove();
  told = toast(text, { error: true });
}

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("[data-card]");
  if (!form) return;
  event.preventDefault();
  const button = event.submitter;
  if (!button) return;
  const meant = button.closest(PENDING);
  const approves = !button.value.startsWith("deny");
  for (const call of meant ? [meant] : form.querySelectorAll(PENDING)) {
    const early = tooEarly(call, approves);
    if (early) return tell(early);
  }
  const fields = new FormData(form);
  fields.set("decision", button.value);
  const focused = form.contains(document.activeElement);
  const buttons = form.querySelectorAll("button");
  for (const each of buttons) each.disabled = true;
  form.dataset.busy = "";
  try {
    show((await post(button.getAttribute("formaction") ?? form.action, fields)).html, focused);
    told?.remove();
  } catch (error) {
    const { code, html } = error.body?.error ?? {};
    const isShown = html && show(html, focused) && code === "invalid";
    if (isShown) told?.remove();
    else tell(error.message);
    if (!html) {
      delete form.dataset.busy;
      for (const each of buttons) each.disabled = false;
    }
  }
});

/** What the page shows of an answer's calls is one part of it, found by its id. Whoever had the focus
    on the card finds it on what still waits, or on what is wrong: whether it shows such is returned. */
function show(html, focused) {
  const part = nodes(html).firstElementChild;
  const shown = document.getElementById(part.id);
  if (!shown) return false;
  const before = shown.querySelectorAll(PENDING).length;
  place(shown, "replace", html);
  const now = document.getElementById(part.id);
  const invalid = now.querySelector("[aria-invalid], .edit > .errorlist");
  const left = now.querySelectorAll(PENDING);
  count(left.length - before);
  if (invalid) (invalid.matches("textarea") ? invalid : invalid.parentElement.querySelector("textarea"))?.focus();
  else if (focused && !now.contains(document.activeElement)) left[0]?.focus();
  return Boolean(invalid);
}

function count(change) {
  const badge = document.getElementById("approvals-badge");
  if (!badge || !change) return;
  const waiting = Math.max(0, Number(badge.textContent) + change);
  badge.textContent = String(waiting);
  badge.hidden = waiting === 0;
}

document.addEventListener("keydown", (event) => {
  const decision = KEYS[event.key.toLowerCase()];
  if (!decision || event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  const at = document.activeElement;
  if (at?.matches("input, textarea, select, [contenteditable]")) return;
  const call = at?.closest(PENDING);
  if (call) {
    event.preventDefault();
    call.querySelector(`button[value="${decision}"]`).click();
  } else {
    const first = document.querySelector(PENDING);
    if (!first) return;
    event.preventDefault();
    first.focus();
    first.scrollIntoView({ block: "nearest" });
  }
});

const inbox = document.querySelector(".inbox");
let looking = null;

/** The inbox shows what is asked and decided elsewhere; what was decided here stays as it was told. */
async function look() {
  looking = null;
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!response.ok) return;
  const page = nodes(await response.text());
  const fresh = [...page.querySelectorAll(".inbox > article")];
  for (const old of inbox.querySelectorAll("article:has(.pending):not(:has([data-busy]))")) {
    const now = fresh.find((article) => article.id === old.id);
    if (!now) old.remove();
    else if (waiting(now) !== waiting(old)) place(old, "replace", now.outerHTML);
  }
  for (const article of fresh) if (!document.getElementById(article.id)) inbox.append(article);
  const nothing = inbox.querySelector(".nothing");
  if (nothing && fresh.length) nothing.remove();
  if (!nothing && !inbox.querySelector("article")) inbox.append(...page.querySelectorAll(".nothing"));
}

function waiting(article) {
  return [...article.querySelectorAll("input[name^='seen-']")].map(({ name, value }) => name + value).join();
}

if (inbox) document.addEventListener("notewire:feed", ({ detail: { kind } }) => {
  if (/^approval_|^snapshot$/.test(kind)) looking ??= setTimeout(look, 100);
});
