// The chat page: ties composer, transcript and stream together, and shows what is done elsewhere: in
// another tab, by a program.
import { Composer } from "notewire/composer";
import { nodes } from "notewire/html";
import { post } from "notewire/http";
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
  button.disabled = true;
  try {
    const { html, message, complete } = await post(form.action);
    for (const part of [...nodes(html).children]) document.getElementById(part.id)?.replaceWith(part);
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
    ended: () => {
      composer.running(null);
      if (isLate) refresh();
    },
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
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  return nodes(response.ok ? await response.text() : "");
}

let isLate = false;
let refreshing = null;
let listing = null;

/** What of the answers can still be undone. A run that goes on says that itself. */
async function refresh() {
  refreshing = null;
  isLate = Boolean(stream && !stream.closed);
  if (isLate) return;
  for (const part of (await page()).querySelectorAll(".undo, .undo-all")) {
    const shown = document.getElementById(part.id);
    if (shown && shown.innerHTML !== part.innerHTML) shown.replaceChildren(...part.childNodes);
  }
}

async function list() {
  listing = null;
  const response = await fetch(conversations.dataset.list);
  if (!response.ok || conversations.contains(document.activeElement?.closest("form"))) return;
  conversations.replaceChildren(nodes(await response.text()));
  const title = conversations.querySelector("[aria-current] .title")?.textContent;
  if (title) document.querySelector(".conversation-head h1").textContent = title;
}

document.addEventListener("notewire:feed", async ({ detail: { kind, id, conversation } }) => {
  const here = transcript?.dataset.conversation;
  if (kind === "conversation_deleted" && id === here) return location.assign("/");
  if (kind === "snapshot" || transcript?.querySelector(`.call:has(.undo) .chip[href*="${id}"]`)) {
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
