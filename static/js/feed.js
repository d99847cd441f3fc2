// What changes of this person's things, wherever it is changed: `notewire:feed` on the document, with
// `{ kind, id, conversation }`. It begins where the page was made, so that nothing is missed. A page
// that nobody can see has no stream: it goes on from where it was when it is looked at again. Nor has
// one whose person is logged out.
import { isLoggedOut } from "notewire/session";

const KINDS = [
  "snapshot",
  "run_queued", "run_running", "run_awaiting_approval", "run_finished",
  "approval_opened", "approval_closed",
  "conversation_created", "conversation_changed", "conversation_deleted",
  "note_created", "note_changed", "note_deleted", "note_restored",
];
const RETRIES = 8;

let position = document.body.dataset.feed;
let source = null;
let failures = 0;

function connect() {
  source?.close();
  source = new EventSource(`/api/events/?after=${position}`);
  for (const kind of KINDS) source.addEventListener(kind, (event) => take(kind, event));
  source.addEventListener("open", () => (failures = 0));
  source.addEventListener("error", async ({ target }) => {
    if (target.readyState !== EventSource.CLOSED || target !== source) return;
    source = null;
    if (await isLoggedOut()) return;
    if (++failures <= RETRIES) setTimeout(look, Math.min(500 * 2 ** failures, 15000));
  });
}

function take(kind, event) {
  position = event.lastEventId;
  const { id, conversation } = JSON.parse(event.data);
  document.dispatchEvent(new CustomEvent("notewire:feed", { detail: { kind, id, conversation } }));
}

function look() {
  if (document.hidden) {
    source?.close();
    source = null;
  } else if (!source && !document.querySelector(".logged-out")) connect();
}

if (position !== undefined) {
  document.addEventListener("visibilitychange", look);
  document.addEventListener("notewire:logged-in", look);
  look();
}
