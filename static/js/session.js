// Whether the person is still logged in. Who asks the server in vain says so here: where the session is
// over the page says it, with the way back, and nothing more is asked until somebody is logged in again,
// in this tab or in another.
const channel = new BroadcastChannel("notewire");
const isPrivate = document.body.dataset.feed !== undefined;
let bar = null;
let asking = null;

/** Whether the session is over; the page says so then. */
export function isLoggedOut() {
  return (asking ??= ask().finally(() => (asking = null)));
}

async function ask() {
  let status = 0;
  try {
    status = (await fetch("/api/account/", { headers: { Accept: "application/json" }, cache: "no-store" })).status;
  } catch {
    return bar !== null; // nobody answers: that is another matter
  }
  if (status === 401) loggedOut();
  else if (status === 200) loggedIn();
  return bar !== null;
}

/** Whether an answer is the page to log in, to which the server sends whoever is not. */
export function leadsToLogin(address) {
  const is = new URL(address, location.href).pathname === "/login/";
  if (is) loggedOut();
  return is;
}

function loggedOut() {
  if (bar || !isPrivate) return;
  bar = document.createElement("div");
  bar.className = "logged-out";
  bar.role = "alert";
  const link = document.createElement("a");
  link.className = "button small primary";
  link.href = `/login/?next=${encodeURIComponent(location.pathname + location.search)}`;
  link.append("Log in");
  const said = document.createElement("p");
  said.append("You are logged out. What you see here is no longer kept up to date.");
  bar.append(said, link);
  document.querySelector(".shell")?.prepend(bar);
}

function loggedIn() {
  if (!bar) return;
  bar.remove();
  bar = null;
  document.dispatchEvent(new CustomEvent("notewire:logged-in"));
}

// A page of nobody's says that a session may be over, one of somebody's that it may be back.
channel.addEventListener("message", ({ data }) => {
  if (isPrivate && data === "session") isLoggedOut();
});
channel.postMessage("session");

document.addEventListener("visibilitychange", () => {
  if (bar && !document.hidden) isLoggedOut();
});
