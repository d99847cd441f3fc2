// Approval cards: sends a word and puts the card as it is then in its place. A call takes no word in
// its first half second, nor an approval before all of its diff was seen. Once its arguments are
// changed that is the diff of the change, which is asked for whenever the person pauses. With the focus
// on a call, A approves it and D denies it; elsewhere either key brings the focus to the first.
import { nodes } from "notewire/html";
import { post, read } from "notewire/http";
import { place } from "notewire/place";
import { toast } from "notewire/toasts";

const CALM = 500;
const PENDING = ".approval.pending";
const KEYS = { a: "approve", d: "deny" };
const PAUSE = 400;
const calming = new WeakMap();

/** From half a second on a call is calm: nobody can have meant something else. */
function calm(call) {
  clearTimeout(calming.get(call));
  call.classList.remove("calm");
  calming.set(call, setTimeout(() => call.classList.add("calm"), CALM));
}

function note(root) {
  for (const call of root.querySelectorAll?.(PENDING) ?? []) {
    if (calming.has(call)) continue;
    calm(call);
    if (boxes(call).some(({ value, defaultValue }) => value !== defaultValue)) changed(call);
  }
}

function boxes(call) {
  return [...call.querySelectorAll(".edit textarea")];
}

/** By the id of a call: when its change is asked about, and whether it is, or is to be again. */
const looks = new Map();

/** What was shown before is out of date at once. */
function changed(call) {
  call.dataset.changed = "";
  call.querySelector("[name^='previewed-']")?.remove();
  call.querySelector(".change").classList.add("old");
  const pause = looks.get(call.id) ?? { timer: 0, busy: false, again: false };
  looks.set(call.id, pause);
  clearTimeout(pause.timer);
  pause.timer = setTimeout(() => lookAt(call.id), PAUSE);
}

/** Show what the change would do. One request at a time; only the answer to the last is shown. */
async function lookAt(id) {
  const call = document.getElementById(id);
  const state = looks.get(id);
  if (!state || !call?.matches(PENDING)) return looks.delete(id);
  clearTimeout(state.timer);
  state.timer = 0;
  if (state.busy) return (state.again = true);
  state.busy = true;
  state.again = false;
  const url = call.querySelector("[value='preview']").getAttribute("formaction");
  let answer;
  try {
    answer = await post(url, new FormData(call.closest("form")));
  } catch (error) {
    answer = { error };
  }
  state.busy = false;
  if (state.again) return lookAt(id);
  if (!state.timer) showChange(document.getElementById(id), answer);
}

function showChange(call, { html, changed, error }) {
  if (!call?.matches(PENDING)) return;
  const part = call.querySelector(".change");
  if (error?.body?.error?.html) {
    show(error.body.error.html, call.contains(document.activeElement));
    return tell(error.message);
  }
  if (error) {
    const said = document.createElement("p");
    said.className = "failed";
    said.append(`What it would do cannot be shown now. ${error.message}`);
    return part.replaceChildren(said);
  }
  place(part, "inner", html);
  part.classList.remove("old");
  call.toggleAttribute("data-changed", changed);
  told?.remove();
  calm(call);
}

document.addEventListener("input", ({ target }) => {
  const call = target.closest(".edit")?.closest(PENDING);
  if (call) changed(call);
});

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
  const isChanged = "changed" in call.dataset;
  const isWrong = call.querySelector(".change .errorlist") !== null;
  if (approves && isChanged && !isWrong && !call.querySelector("[name^='previewed-']")) {
    changed(call);
    lookAt(call.id);
    return "Look first at what it would do with your change.";
  }
  const diff = call.querySelector(isChanged ? ".change .diff" : ".diff");
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
  if (button.value === "preview") {
    changed(meant);
    return lookAt(meant.id);
  }
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
    const { html } = await post(button.getAttribute("formaction") ?? form.action, fields);
    // Where the card is gone, the stream was here first, and knows by now what came of it.
    show(html, focused, form.isConnected);
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
function show(html, focused, isNews = true) {
  const part = nodes(html).firstElementChild;
  const shown = document.getElementById(part.id);
  if (!shown) return false;
  const before = shown.querySelectorAll(PENDING).length;
  if (isNews) place(shown, "replace", html);
  const now = document.getElementById(part.id);
  const invalid = now.querySelector(".edit [aria-invalid], .edit > .errorlist");
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
  const html = await read(location.href);
  if (!html) return;
  const page = nodes(html);
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
