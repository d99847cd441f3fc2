// What every page needs: the theme, CSRF tokens that are never stale, how many decisions wait, and
// htmx's errors as toasts.
import "notewire/feed";
import { csrfToken } from "notewire/http";
import { leadsToLogin } from "notewire/session";
import { toast } from "notewire/toasts";

const dark = matchMedia("(prefers-color-scheme: dark)");

for (const button of document.querySelectorAll("[data-theme-toggle]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const system = dark.matches ? "dark" : "light";
    const next = (root.dataset.theme ?? system) === "dark" ? "light" : "dark";
    // Choosing what the system says anyway means following the system again.
    const age = next === system ? 0 : 31536000;
    if (age) root.dataset.theme = next;
    else delete root.dataset.theme;
    document.cookie = `theme=${next}; path=/; max-age=${age}; samesite=lax`;
  });
}

document.addEventListener("submit", (event) => {
  const field = event.target.elements.csrfmiddlewaretoken;
  const token = csrfToken();
  if (field && token) field.value = token;
}, true);

// What one person wrote is not left to the next.
document.querySelector("[data-log-out]")?.addEventListener("submit", () => {
  for (const key of Object.keys(localStorage)) if (key.startsWith("draft:")) localStorage.removeItem(key);
});

document.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.verb !== "get") event.detail.headers["X-CSRFToken"] = csrfToken();
});
document.addEventListener("htmx:beforeSwap", (event) => {
  if (leadsToLogin(event.detail.xhr.responseURL)) event.detail.shouldSwap = false;
});
document.addEventListener("htmx:responseError", (event) => {
  toast(`The server answered with ${event.detail.xhr.status}. Nothing was changed.`, { error: true });
});
document.addEventListener("htmx:sendError", () => toast("The server cannot be reached.", { error: true }));

let counting = null;
document.addEventListener("notewire:feed", ({ detail: { kind } }) => {
  if (kind.startsWith("approval_") || kind === "snapshot") counting ??= setTimeout(count, 50);
});

async function count() {
  counting = null;
  const response = await fetch("/api/approvals/?limit=1", { headers: { Accept: "application/json" } });
  if (!response.ok) return;
  const waiting = (await response.json()).count;
  let badge = document.getElementById("approvals-badge");
  if (!badge) {
    badge = Object.assign(document.createElement("span"), { id: "approvals-badge", className: "badge" });
    document.querySelector("[data-inbox]")?.append(badge);
  }
  badge.textContent = String(waiting);
  badge.hidden = waiting === 0;
}
