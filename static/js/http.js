// Requests of our own to our own server: the CSRF token is read anew each time, since a log-in in
// another tab rotates it.
import { isLoggedOut, leadsToLogin } from "notewire/session";

export function csrfToken() {
  return document.cookie.match(/(?:^|; )csrftoken=([^;]*)/)?.[1] ?? "";
}

/** What a failed request says, for a toast: the envelope's message where there is one. */
export class RequestError extends Error {
  constructor(response, body) {
    super(body?.error?.message ?? `The server answered with ${response.status}.`);
    this.status = response.status;
    this.code = body?.error?.code ?? "";
    this.body = body;
  }
}

const LOGGED_OUT = "You were logged out. Log in again in another tab, then retry.";

/** Why a form that is sent now would be lost to a page that says so, or nothing. */
export async function obstacle() {
  let response;
  try {
    response = await fetch("/api/notes/language/", { method: "HEAD", cache: "no-store" });
  } catch {
    return "The server cannot be reached. Nothing is lost: try again.";
  }
  if (response.status === 401 && (await isLoggedOut())) return LOGGED_OUT;
  return response.status < 500 ? "" : `The server answered with ${response.status}.`;
}

/** The text of a page of ours, or of a part of one; "" where there is none. */
export async function read(url) {
  const response = await fetch(url, { headers: { Accept: "text/html" } });
  return response.ok && !leadsToLogin(response.url) ? response.text() : "";
}

export async function post(url, fields = {}) {
  let response = await send(url, fields);
  if (response.status === 403) {
    await fetch(location.href, { cache: "no-store" }); // sets the cookie again
    response = await send(url, fields);
  }
  if (leadsToLogin(response.url)) {
    throw new RequestError(response, { error: { code: "not_authenticated", message: LOGGED_OUT } });
  }
  const json = response.headers.get("Content-Type")?.includes("json");
  const body = json ? await response.json() : null;
  if (!response.ok) throw new RequestError(response, body);
  return body;
}

function send(url, fields) {
  return fetch(url, {
    method: "POST",
    headers: { Accept: "application/json", "X-CSRFToken": csrfToken() },
    body: new URLSearchParams(fields),
  });
}
