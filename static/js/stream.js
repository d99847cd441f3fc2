// Follows one run: places the blocks and fragments that the server rendered, in their order, once a
// frame. The first fragment after each connection is the whole run, so nothing is there twice.
import { nodes } from "notewire/html";
import { place } from "notewire/place";
import { isLoggedOut } from "notewire/session";

const RETRIES = 8;

export class RunStream {
  /** `on.grown()` after each change, `on.ended(reason)` once, `on.state(text)` about the connection. */
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.blocks = new Map();
    this.queue = [];
    this.failures = 0;
    this.connect();
  }

  connect() {
    const source = (this.source = new EventSource(this.url));
    for (const kind of ["fragment", "block", "done"]) {
      source.addEventListener(kind, (event) => this.take(kind, JSON.parse(event.data)));
    }
    source.addEventListener("open", () => {
      this.failures = 0;
      this.on.state("");
    });
    source.addEventListener("error", (event) => {
      if (event.data || this.closed) return;
      this.on.state("Reconnecting…");
      if (source.readyState === EventSource.CLOSED) this.failed();
    });
  }

  async failed() {
    if (!(await isLoggedOut())) return this.retry();
    this.on.state("");
    document.addEventListener("notewire:logged-in", () => this.closed || this.connect(), { once: true });
  }

  // The browser reconnects by itself unless the answer was an error.
  retry() {
    if (++this.failures > RETRIES) return this.on.state("The connection is lost. Reload the page.");
    setTimeout(() => this.closed || this.connect(), Math.min(500 * 2 ** this.failures, 15000));
  }

  close() {
    this.closed = true;
    this.source.close();
  }

  take(kind, data) {
    this.queue.push([kind, data]);
    if (kind === "done") this.close();
    if (this.queue.length > 1) return;
    // A hidden page gets no frames.
    if (document.hidden) setTimeout(() => this.apply());
    else requestAnimationFrame(() => this.apply());
  }

  apply() {
    const queue = this.queue;
    this.queue = [];
    let reason = null;
    for (const [kind, data] of queue) {
      if (kind === "done") reason = data.reason;
      else if (kind === "block") this.block(data);
      else this.fragment(data);
    }
    this.on.grown();
    if (reason !== null) {
      this.on.state("");
      this.on.ended(reason);
    }
  }

  fragment({ target, how, html }) {
    const element = document.getElementById(target);
    if (!element) return;
    place(element, how, html);
    if (how === "replace") this.blocks.clear();
  }

  block({ target, index, keep, html }) {
    const element = document.getElementById(target);
    if (!element) return;
    const known = this.blocks.get(target) ?? [];
    if (index === 0) element.replaceChildren();
    else for (const later of known.slice(index)) later?.nodes.forEach((node) => node.remove());
    const whole = (known[index]?.html ?? "").slice(0, keep) + html;
    const fresh = nodes(whole);
    known.length = index;
    known[index] = { html: whole, nodes: [...fresh.childNodes] };
    this.blocks.set(target, known);
    element.append(fresh);
  }
}
