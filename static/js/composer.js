// The message box: Enter sends, Shift+Enter breaks the line, an input method's Enter never sends.
// Drafts are kept in this browser, one for each conversation.

export class Composer {
  /** `on.send(text)` resolves when the message is stored; the draft is kept until then. */
  constructor(form, on) {
    this.form = form;
    this.on = on;
    this.box = form.elements.content;
    this.send = form.querySelector("#send");
    this.stop = form.querySelector("#stop");
    this.key = `draft:${form.dataset.draft}`;
    this.busy = false;
    if (!this.box.value) this.box.value = localStorage.getItem(this.key) ?? "";
    this.listen();
    this.running(null);
  }

  listen() {
    this.box.addEventListener("input", () => this.keep());
    this.box.addEventListener("keydown", (event) => {
      // 229: Safari ends a composition before it sends the Enter that confirmed it.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      if (!this.stopUrl || this.isAwaiting) this.form.requestSubmit();
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (event.submitter !== this.stop) this.submit();
    });
    this.stop.addEventListener("click", (event) => {
      event.preventDefault();
      this.halt();
    });
    addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.defaultPrevented && !event.isComposing && !this.isElsewhere(event)) this.halt();
    });
  }

  /** Escape is meant for a menu that is open, for a field that is typed in, or for a card that waits:
      stopping would take back a question before it is answered. */
  isElsewhere({ target }) {
    const typing = target !== this.box && target.matches?.("input, textarea, select");
    return this.isAwaiting || typing || document.querySelector(":popover-open") !== null;
  }

  keep() {
    if (this.box.value) localStorage.setItem(this.key, this.box.value);
    else localStorage.removeItem(this.key);
  }

  /** A run that waits for a decision is stopped by a new message: then there is Send, too. */
  awaiting(isAwaiting) {
    this.isAwaiting = isAwaiting;
    this.send.hidden = Boolean(this.stopUrl) && !isAwaiting;
  }

  /** While a run goes on Stop stands in the place of Send. */
  running(stopUrl) {
    this.stopUrl = stopUrl;
    this.isAwaiting = false;
    this.send.hidden = Boolean(stopUrl);
    this.stop.hidden = !stopUrl;
    this.stop.disabled = false;
  }

  write(text) {
    this.box.value = text;
    this.keep();
    this.box.focus();
  }

  async submit() {
    const text = this.box.value;
    if (!text.trim() || this.busy || (this.stopUrl && !this.isAwaiting)) return;
    this.busy = this.send.disabled = true;
    try {
      if (await this.on.send(text)) this.write("");
    } finally {
      this.busy = this.send.disabled = false;
    }
  }

  halt() {
    if (!this.stopUrl || this.stop.disabled) return;
    this.stop.disabled = true;
    this.on.stop(this.stopUrl).catch(() => (this.stop.disabled = false));
  }
}
