/** What every page is: an element without a shadow, with its place, its loads and its events. */
import { html, LitElement, nothing, type TemplateResult } from "lit";
import { gateway } from "../lib/house";
import type { Listener } from "../lib/gateway";

/** An element that renders into itself, so that the page's one style sheet counts. */
export abstract class Part extends LitElement {
  private ends: Array<() => void> = [];

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  /** Render again. */
  protected change(): void {
    this.requestUpdate();
  }

  /** Hear an event of the gateway for as long as the element stands. Call it in `begin`. */
  protected hear(event: string, listener: Listener): void {
    this.ends.push(gateway.on(event, listener));
  }

  /** Have `end` called when the element goes. */
  protected until(end: () => void): void {
    this.ends.push(end);
  }

  /** What happens when the element comes to stand on the page. */
  protected begin(): void {}

  override connectedCallback(): void {
    super.connectedCallback();
    this.begin();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    for (const end of this.ends.splice(0)) end();
  }
}

/** A page. `params` are the values of its route's pattern, `query` what stands behind the `?`. */
export abstract class Page extends Part {
  params: Record<string, string> = {};
  query = new URLSearchParams();

  /** The place changed and the page stays. */
  moved(): void {
    this.requestUpdate();
  }

  /** Keys of this page: true when the key was used. Not asked while a person types. */
  key(_key: string, _event: KeyboardEvent): boolean {
    return false;
  }

  protected head(title: string, meta: unknown = nothing, actions: unknown = nothing): TemplateResult {
    return html`<header class="head"><h1>${title}</h1><span class="meta">${meta}</span><span class="grow"></span>${actions}</header>`;
  }
}
