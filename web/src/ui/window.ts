/**
 * Only the rows near what is seen stand in the document; two spacers keep the length of the others. What a person looks
 * at stays where it is when rows above it come or grow; at the end, the end stays in view.
 */
import type { ReactiveController, ReactiveControllerHost } from "lit";

const GUESS = 96; // pixels of a row that was never seen
const MARGIN = 1_400; // pixels beyond the view that are there as well
const END = 48; // so near the end counts as the end

export class Windowed implements ReactiveController {
  /** The rows that stand in the document: from `first` up to, without, `last`. */
  first = 0;
  last = 0;
  /** Whether the end is in view and is to stay so. */
  atEnd = true;
  private heights = new Map<string, number>();
  private scroller: HTMLElement | null = null;
  private anchor: { id: string; top: number } | null = null;
  private frame = 0;
  private place = 0;
  private sized: ResizeObserver | null = null;

  constructor(
    private readonly host: ReactiveControllerHost & HTMLElement,
    private readonly ids: () => readonly string[],
    private readonly nearTop: () => void = () => {},
  ) {
    host.addController(this);
  }

  /** Follow the element that scrolls; `body` is what grows in it. */
  attach(scroller: HTMLElement, body: HTMLElement): void {
    if (this.scroller === scroller) return;
    this.detach();
    this.scroller = scroller;
    scroller.addEventListener("scroll", this.scrolled, { passive: true });
    this.sized = new ResizeObserver(() => {
      if (this.atEnd) this.toEnd();
    });
    this.sized.observe(body);
  }

  hostDisconnected(): void {
    this.detach();
  }

  private detach(): void {
    this.scroller?.removeEventListener("scroll", this.scrolled);
    this.sized?.disconnect();
    this.scroller = null;
    cancelAnimationFrame(this.frame);
  }

  /** Forget what was measured: another list begins, seen at its end. */
  restart(): void {
    this.heights.clear();
    this.anchor = null;
    this.atEnd = true;
  }

  toEnd(): void {
    this.atEnd = true;
    if (this.scroller) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  /** Bring a row into view; it is rendered first where it does not stand in the document. */
  reveal(id: string): void {
    const at = this.ids().indexOf(id);
    if (at < 0 || !this.scroller) return;
    this.atEnd = false;
    this.anchor = null;
    this.scroller.scrollTop += this.sum(at) - this.above() - 80;
    this.host.requestUpdate();
    void this.host.updateComplete.then(() => this.row(id)?.scrollIntoView({ block: "center" }));
  }

  hostUpdate(): void {
    this.anchor = this.atEnd ? null : this.seen();
    this.choose(this.depth());
  }

  hostUpdated(): void {
    this.measure();
    const ids = this.ids();
    this.space("above", this.sum(this.first));
    this.space("below", this.sum(ids.length) - this.sum(this.last));
    if (!this.scroller) return;
    if (this.atEnd) this.toEnd();
    else if (this.anchor) {
      const row = this.row(this.anchor.id);
      const moved = row ? row.getBoundingClientRect().top - this.anchor.top : 0;
      if (Math.abs(moved) > 0.5) this.scroller.scrollTop += moved;
    }
    this.place = this.scroller.scrollTop;
    if (ids.length && this.place < MARGIN) this.nearTop();
  }

  /** How far into the list the view is: by the row a person looks at, which may have got others before it. */
  private depth(): number {
    const at = this.anchor ? this.ids().indexOf(this.anchor.id) : -1;
    if (!this.anchor || at < 0) return this.above();
    return this.sum(at) + (this.scroller?.getBoundingClientRect().top ?? 0) - this.anchor.top;
  }

  private scrolled = (): void => {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      const scroller = this.scroller;
      if (!scroller) return;
      // Only a person who goes up leaves the end; what grows below does not take it away.
      const up = scroller.scrollTop < this.place - 1;
      this.place = scroller.scrollTop;
      const near = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < END;
      const atEnd = near || (this.atEnd && !up);
      const before = [this.first, this.last].join();
      this.choose(this.above());
      if (before !== [this.first, this.last].join() || atEnd !== this.atEnd) {
        this.atEnd = atEnd;
        this.host.requestUpdate();
      }
      if (scroller.scrollTop < MARGIN) this.nearTop();
    });
  };

  private choose(top: number): void {
    const ids = this.ids();
    const view = this.scroller?.clientHeight ?? 900;
    if (this.atEnd) {
      let at = ids.length;
      for (let room = view + MARGIN; at > 0 && room > 0; at -= 1) room -= this.height(ids[at - 1]!);
      this.first = at;
      this.last = ids.length;
      return;
    }
    let at = 0;
    let y = 0;
    for (; at < ids.length && y + this.height(ids[at]!) < top - MARGIN; at += 1) y += this.height(ids[at]!);
    this.first = at;
    for (; at < ids.length && y < top + view + MARGIN; at += 1) y += this.height(ids[at]!);
    this.last = at;
  }

  /** How far the view has gone into the list: what stands before the list in the page does not count. */
  private above(): number {
    const spacer = this.host.querySelector('[data-space="above"]');
    if (!this.scroller || !spacer) return this.scroller?.scrollTop ?? 0;
    return this.scroller.getBoundingClientRect().top - spacer.getBoundingClientRect().top;
  }

  private seen(): { id: string; top: number } | null {
    const edge = this.scroller?.getBoundingClientRect().top ?? 0;
    for (const row of this.host.querySelectorAll<HTMLElement>("[data-row]")) {
      const box = row.getBoundingClientRect();
      if (box.bottom > edge) return { id: row.dataset.row!, top: box.top };
    }
    return null;
  }

  private measure(): void {
    for (const row of this.host.querySelectorAll<HTMLElement>("[data-row]")) this.heights.set(row.dataset.row!, row.offsetHeight);
  }

  private row(id: string): HTMLElement | null {
    return this.host.querySelector(`[data-row="${CSS.escape(id)}"]`);
  }

  private height(id: string): number {
    return this.heights.get(id) ?? GUESS;
  }

  private sum(to: number): number {
    const ids = this.ids();
    let all = 0;
    for (let at = 0; at < to; at += 1) all += this.height(ids[at]!);
    return all;
  }

  private space(name: string, pixels: number): void {
    const spacer = this.host.querySelector<HTMLElement>(`[data-space="${name}"]`);
    if (spacer) spacer.style.height = `${pixels}px`;
  }
}
