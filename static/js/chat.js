// The chat page: ties composer, transcript and stream together, and tells other tabs of new runs.
import { Composer } from "notewire/composer";
import { nodes } from "notewire/html";
import { post } from "notewire/http";
import { Follower } from "notewire/scroll";
import { RunStream } from "notewire/stream";
import { toast } from "notewire/toasts";

const transcript = document.getElementById("transcript");
const connection = document.getElementById("connection");
const follower = new Follower(document.getElementById("scroller"), document.getElementById("new-text"));
const form = document.getElementById("composer");
const tabs = new BroadcastChannel("notewire-runs");
const composer = new Composer(form, { send, stop: (url) => post(url) });
let stream = null;

async function send(text) {
  let answer;
  try {
    answer = await post(form.action, { content: text });
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
  if (composer.isAwaiting) {
    await reload();
    tabs.postMessage(transcript.dataset.conversation);
  } else begin(answer);
  return true;
}

/** Continue an answer that ended early, or have its message answered once more in its place. */
transcript?.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-again]");
  if (!button || button.disabled) return;
  button.disabled = true;
  try {
    const answer = await post(button.dataset.again);
    if ("instead" in button.dataset) button.closest(".run").remove();
    begin(answer);
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
    tabs.postMessage(transcript.dataset.conversation);
  } catch (error) {
    button.disabled = false;
    toast(error.message, { error: true });
  }
});

function begin(answer) {
  transcript.append(nodes(answer.html));
  follower.toEnd();
  follow();
  tabs.postMessage(transcript.dataset.conversation);
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
      document.querySelector(".conversations [aria-current] .spinner")?.remove();
    },
  });
}

/** Another tab began a run in this conversation: show what there is now, then follow it. */
async function reload() {
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  const fresh = nodes(await response.text()).getElementById("transcript");
  if (!fresh) return;
  transcript.replaceChildren(...fresh.childNodes);
  follower.grown();
  follow();
}

tabs.addEventListener("message", (event) => {
  if (transcript && event.data === transcript.dataset.conversation) reload();
});

const suggestions = document.querySelector(".suggestions");
if (suggestions) suggestions.hidden = false;
for (const button of document.querySelectorAll("[data-suggestion]")) {
  button.addEventListener("click", () => composer.write(button.textContent));
}

follow();
follower.toEnd();
