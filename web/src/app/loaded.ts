/** Something asked of the gateway: shown as a skeleton, as itself, grey while it is old, or as what went wrong. */
import { html, type ReactiveController, type ReactiveControllerHost, type TemplateResult } from "lit";
import { gateway } from "../lib/house";
import { Refused } from "../lib/wire";
import { ago } from "../lib/format";
import { t } from "../lib/words";
import { failed, skeleton } from "../ui/parts";

export interface Asking {
  /** Events after which it is asked again. */
  on?: readonly string[];
  /** So many milliseconds are waited after an event, for more of them. */
  pauseMs?: number;
}

export class Loaded<T> implements ReactiveController {
  value: T | undefined;
  fault: Refused | null = null;
  /** When `value` was read. */
  at = 0;
  private ends: Array<() => void> = [];
  private round = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly host: ReactiveControllerHost,
    private readonly ask: () => Promise<T>,
    private readonly how: Asking = {},
  ) {
    host.addController(this);
  }

  hostConnected(): void {
    let open = gateway.state === "open";
    this.ends.push(
      gateway.watch(() => {
        const now = gateway.state === "open";
        if (now && !open) void this.reload();
        open = now;
        this.host.requestUpdate();
      }),
      gateway.on("gap", () => this.soon()),
      ...(this.how.on ?? []).map((event) => gateway.on(event, () => this.soon())),
    );
    void this.reload();
  }

  hostDisconnected(): void {
    clearTimeout(this.timer);
    for (const end of this.ends.splice(0)) end();
  }

  /** Ask again shortly; many calls are one. */
  soon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.reload();
    }, this.how.pauseMs ?? 250);
  }

  async reload(): Promise<void> {
    const round = ++this.round;
    try {
      const value = await this.ask();
      if (round !== this.round) return;
      this.value = value;
      this.fault = null;
      this.at = Date.now();
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      if (round !== this.round) return;
      this.fault = fault;
    }
    this.host.requestUpdate();
  }

  /** What is there, by its state. */
  show(ready: (value: T) => unknown, rows = 4): TemplateResult {
    if (this.value === undefined) {
      return this.fault ? failed(this.fault, () => void this.reload()) : skeleton(rows);
    }
    const old = this.fault !== null || gateway.state !== "open";
    return html`${this.fault && gateway.state === "open" ? failed(this.fault, () => void this.reload()) : ""}
      <div class=${old ? "stale" : ""}>
        ${old ? html`<p class="small quiet">${t("state.stale", { time: ago(this.at) })}</p>` : ""}${ready(this.value)}
      </div>`;
  }
}
