// The view follows the end of the transcript while the person is there; else a pill offers it.

const NEAR = 64;

export class Follower {
  constructor(scroller, pill) {
    this.scroller = scroller;
    this.pill = pill;
    this.following = true;
    scroller.addEventListener("scroll", () => {
      this.following = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR;
      if (this.following) pill.hidden = true;
    }, { passive: true });
    pill.addEventListener("click", () => this.toEnd());
    new ResizeObserver(() => this.following && this.toEnd()).observe(scroller);
  }

  /** To be called after the transcript grew. */
  grown() {
    if (this.following) this.toEnd();
    else this.pill.hidden = false;
  }

  toEnd() {
    this.following = true;
    this.pill.hidden = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }
}
