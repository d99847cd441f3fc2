// The chat page: ties composer, transcript and stream together, and shows what is done elsewhere: in
// another tab, by a program.
import { Composer } from "notewire/composer";
import { nodes } from "notewire/html";
import { post, read } from "notewire/http";
import { Follower } from "notewire/scroll";
import { RunStream } from "notewire/stream";
import { toast } from "notewire/toasts";

const conversations = document.querySelector(".conversations");
const transcript = document.getElementById("transcript");
const connection = document.getElementById("connection");
const follower = new Follower(document.getElementById("scroller"), document.getElementById("new-text"));
const form = document.getElementById("composer");
const composer = new Composer(form, { send, stop: (url) => post(url) });
let stream = null;
let begun = Promise.resolve();

async function send(text) {
  let answer;
  try {
    answer = await begin(post(form.action, { content: text }));
  } catch (error) {
    toast(error.message, { error: true });
    if (error.code === "conversation_busy") await reload();
    return false;
  }
  if (!transcript) {
    localStorage.removeItem(composer.key);
    location.assign(answer.url);
    return true;
  }
  if (composer.isAwaiting) await reload();
  else append(answer);
  return true;
}

/** Continue an answer that ended early, or have its message answered once more in its place. */
transcript?.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-again]");
  if (!button || button.disabled) return;
  button.disabled = true;
  try {
    const answer = await begin(post(button.dataset.again));
    if ("instead" in button.dataset) button.closest(".run").remove();
    append(answer);
  } catch (error) {
    button.disabled = false;
    toast(error.message, { error: true });
  }
});

/** Undo a step or all of an answer: what says so on the page comes with the answer. */
transcript?.addEventListener("submit", async (event) => {
  const form = event.target.closest("[data-undo]");
  if (!form) return;
  event.preventDefault();
  const button = form.querySelector("button");
  const focused = button === document.activeElement && form.parentElement.id;
  button.disabled = true;
  try {
    const { html, message, complete } = await post(form.action);
    showUndo(nodes(html), focused);
    toast(message, { error: !complete });
  } catch (error) {
    button.disabled = false;
    toast(error.message, { error: true });
  }
});

/** The feed may tell of a run before the answer to its request does, which shows it. */
function begin(request) {
  begun = request.catch(() => {}).then(() => new Promise((shown) => setTimeout(shown)));
  return request;
}

function append(answer) {
  transcript.append(nodes(answer.html));
  follower.toEnd();
  follow();
}

/** Follow the run that is going on, if any. */
function follow() {
  const run = transcript?.querySelector("[data-stream]");
  if (!run) return;
  stream?.close();
  composer.running(run.dataset.stop);
  composer.awaiting(transcript.querySelector("[data-awaiting]") !== null);
  stream = new RunStream(run.dataset.stream, {
    grown: () => {
      follower.grown();
      composer.awaiting(transcript.querySelector("[data-awaiting]") !== null);
    },
    state: (text) => (connection.textContent = text),
    ended: () => composer.running(null),
  });
}

/** A run was begun elsewhere: show what there is now, then follow it. */
async function reload() {
  const fresh = (await page()).getElementById("transcript");
  if (!fresh) return;
  transcript.replaceChildren(...fresh.childNodes);
  follower.grown();
  follow();
}

async function page() {
  return nodes(await read(location.href));
}

let refreshing = null;
let listing = null;

/** What of the answers can still be undone. What has no part any more, as its note is gone, cannot. */
async function refresh() {
  refreshing = null;
  const fresh = await page();
  if (!fresh.getElementById("transcript")) return;
  showUndo(fresh);
  for (const shown of transcript.querySelectorAll(".undo, .undo-all")) {
    if (!fresh.getElementById(shown.id)) shown.replaceChildren();
  }
}

/** Whoever had the focus on an Undo that is none any more finds it on what says so. */
function showUndo(fresh, focusedId = document.activeElement?.closest(".undo, .undo-all")?.id) {
  for (const part of fresh.querySelectorAll(".undo, .undo-all")) {
    const shown = document.getElementById(part.id);
    if (!shown || shown.textContent === part.textContent) continue;
    shown.replaceChildren(...part.childNodes);
    if (shown.id !== focusedId) continue;
    const next = shown.querySelector("button") ?? shown;
    if (next === shown) shown.tabIndex = -1;
    next.focus({ preventScroll: true });
  }
}

/** Whether the page shows a change to this note which a person might undo. While a run goes on it
    changes notes itself, and says in the end how they stand. */
function mayUndo(id) {
  const calls = transcript?.querySelectorAll(`.call:has(.undo) .chip[href*="${id}"]`) ?? [];
  return [...calls].some((chip) => !chip.closest(".run").matches(":has([data-stream]):not(:has([data-awaiting]))"));
}

async function list() {
  listing = null;
  const html = await read(conversations.dataset.list);
  if (!html || conversations.contains(document.activeElement?.closest("form"))) return;
  conversations.replaceChildren(nodes(html));
  const title = conversations.querySelector("[aria-current] .title")?.textContent;
  if (title) document.querySelector(".conversation-head h1").textContent = title;
}

document.addEventListener("notewire:feed", async ({ detail: { kind, id, conversation } }) => {
  const here = transcript?.dataset.conversation;
  if (kind === "conversation_deleted" && id === here) return location.assign("/");
  if (transcript && (kind === "snapshot" || mayUndo(id))) {
    refreshing ??= setTimeout(refresh, 100);
  }
  if (/^(run|conversation)_|^snapshot$/.test(kind)) listing ??= setTimeout(list, 100);
  if (kind !== "run_queued" || !here || conversation !== here) return;
  await begun;
  if (!document.getElementById(`run-${id}`)) await reload();
});

const suggestions = document.querySelector(".suggestions");
if (suggestions) suggestions.hidden = false;
for (const button of document.querySelectorAll("[data-suggestion]")) {
  button.addEventListener("click", () => composer.write(button.textContent));
}

follow();
follower.toEnd();
