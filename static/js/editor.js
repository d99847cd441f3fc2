// The note editor: Ctrl+S saves in place, and nothing typed is lost by leaving the page.
import { csrfToken, obstacle, post } from "notewire/http";
import { toast } from "notewire/toasts";

const form = document.getElementById("editor");
const state = document.getElementById("editor-state");
let dirty = Boolean(form.querySelector(".box.warn"));
let saving = null;
let asking = false;
let isClear = false;

form.addEventListener("input", () => {
  dirty = true;
  state.textContent = "Not saved";
});
form.addEventListener("submit", async (event) => {
  if (isClear) return void (dirty = false);
  event.preventDefault();
  if (asking) return;
  asking = true;
  const problem = await obstacle();
  asking = false;
  if (problem) return toast(problem, { error: true });
  form.elements.csrfmiddlewaretoken.value = csrfToken();
  isClear = true;
  form.requestSubmit();
});
addEventListener("pageshow", () => (isClear = false));
addEventListener("beforeunload", (event) => dirty && event.preventDefault());

addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey) || event.altKey) return;
  event.preventDefault();
  if (!("savedInPlace" in form.dataset)) form.requestSubmit();
  else saving ??= save().finally(() => (saving = null));
});

async function save() {
  const sent = new FormData(form);
  dirty = false;
  state.textContent = "Saving…";
  try {
    const { version, end } = await post(form.action, Object.fromEntries(sent));
    form.elements.version.value = version;
    if (form.elements.end) form.elements.end.value = end;
    state.textContent = dirty ? "Not saved" : "Saved";
  } catch (error) {
    dirty = true;
    state.textContent = "Not saved";
    // The server shows both texts on a page of its own.
    if (error.code === "note_version_conflict") form.requestSubmit();
    else toast(error.message, { error: true });
  }
}
