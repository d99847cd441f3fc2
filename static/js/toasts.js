// Short messages in the polite live region; errors stay until they are closed.

const region = document.getElementById("toasts");

/** The message, for who takes it back. */
export function toast(text, { error = false } = {}) {
  const box = document.createElement("div");
  box.className = error ? "toast error" : "toast";
  box.append(text);
  const close = document.createElement("button");
  close.type = "button";
  close.append("×");
  close.setAttribute("aria-label", "Close");
  close.addEventListener("click", () => box.remove());
  box.append(close);
  region.append(box);
  if (!error) setTimeout(() => box.remove(), 6000);
  return box;
}

// What can be taken back stays longer.
for (const box of region.querySelectorAll(".toast:not(.error)")) {
  setTimeout(() => box.remove(), box.querySelector("form") ? 20000 : 6000);
}
