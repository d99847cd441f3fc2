// Puts HTML of the server where it belongs, and keeps what the person did there: what is open, what
// was typed, how far was read, where the focus is.
import { nodes } from "notewire/html";

/** `how`: "replace" the element, fill it ("inner"), or "append" to it. */
export function place(element, how, html) {
  const kept = how === "append" ? null : keep(element);
  const fresh = nodes(html);
  if (how === "append") element.append(fresh);
  else if (how === "inner") element.replaceChildren(fresh);
  else element.replaceWith(fresh);
  if (kept) restore(kept);
}

function keep(element) {
  const focus = element.contains(document.activeElement) ? document.activeElement : null;
  return {
    open: ids(element, "details[open]"),
    typed: [...element.querySelectorAll("textarea[id]")].filter((box) => box.value !== box.defaultValue),
    read: [...element.querySelectorAll(".diff[id]")].map((diff) => {
      return { id: diff.id, text: diff.textContent, top: diff.scrollTop, seen: "seen" in diff.dataset };
    }),
    focus,
    selection: focus?.matches("textarea") ? [focus.selectionStart, focus.selectionEnd] : null,
  };
}

function restore({ open, typed, read, focus, selection }) {
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  for (const { id, value } of typed) {
    const box = document.getElementById(id);
    if (box) box.value = value;
  }
  for (const { id, text, top, seen } of read) {
    const diff = document.getElementById(id);
    // What changed has to be read again.
    if (diff?.textContent !== text) continue;
    diff.scrollTop = top;
    if (seen) diff.dataset.seen = "";
  }
  if (!focus || document.contains(focus)) return;
  const again = document.getElementById(focus.id || focus.closest("[id]")?.id);
  again?.focus({ preventScroll: true });
  if (selection && again?.matches("textarea")) again.setSelectionRange(...selection);
}

function ids(element, selector) {
  return [...element.querySelectorAll(selector)].map((each) => each.id).filter(Boolean);
}
