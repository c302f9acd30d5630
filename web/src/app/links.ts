/** What the side bar says of the house: how each link stands, and how much waits where. */
import { html, nothing, type ReactiveController, type ReactiveControllerHost } from "lit";
import { gateway } from "../lib/house";
import { Refused, type Dict } from "../lib/wire";
import { ago, lasted } from "../lib/format";
import { t } from "../lib/words";
import { dot } from "../ui/parts";

const EVERY_MS = 30_000;

export interface Link {
  name: string;
  state: "ok" | "warn" | "bad" | "off";
  words: string;
}

/** A link in a word, from its row of `channels.status`. */
export function linkOf(label: string, row: Dict, now: number): Link {
  const heard = Number(row.lastTransportActivityAt ?? row.lastInboundAt ?? row.lastConnectedAt ?? 0);
  const stalled = Number(row.stalledSince ?? 0);
  if (stalled) return { name: label, state: "warn", words: t("link.stalled", { time: lasted(now - stalled) }) };
  if (row.connected) return { name: label, state: "ok", words: heard ? ago(heard, now) : t("link.on") };
  if (row.lastError) return { name: label, state: "bad", words: t("link.failed") };
  return { name: label, state: "off", words: row.running ? t("link.connecting") : t("link.off") };
}

export class Links implements ReactiveController {
  private links: Link[] = [];
  private counts: Record<string, number> = {};
  private timer: ReturnType<typeof setInterval> | undefined;
  private soon: ReturnType<typeof setTimeout> | undefined;
  private ends: Array<() => void> = [];

  constructor(private readonly host: ReactiveControllerHost) {
    host.addController(this);
  }

  hostConnected(): void {
    const again = () => (this.soon ??= setTimeout(() => void this.read(), 400));
    this.timer = setInterval(again, EVERY_MS);
    let open = false;
    this.ends = [
      gateway.watch(() => {
        if (gateway.state === "open" && !open) again();
        open = gateway.state === "open";
      }),
      ...["exec.approval.requested", "exec.approval.resolved", "plugin.approval.requested", "plugin.approval.resolved", "sessions.changed", "health"]
        .map((event) => gateway.on(event, again)),
    ];
  }

  hostDisconnected(): void {
    clearInterval(this.timer);
    clearTimeout(this.soon);
    for (const end of this.ends.splice(0)) end();
  }

  /** How much waits for a person on a page. */
  count(path: string): number {
    return this.counts[path] ?? 0;
  }

  private async read(): Promise<void> {
    this.soon = undefined;
    if (gateway.state !== "open" || document.hidden) return;
    const [channels, status, exec, plugin] = await Promise.all(
      ["channels.status", "status", "exec.approval.list", "plugin.approval.list"].map((method) => this.ask(method)),
    );
    const now = Date.now();
    const rows = Object.entries((channels?.channelAccounts ?? {}) as Dict);
    this.links = rows.flatMap(([channel, accounts]) =>
      (accounts as Dict[]).filter((row) => row.enabled && channel !== "webchat").map((row) => {
        const label = String(channels?.channelLabels?.[channel] ?? channel);
        return linkOf((accounts as Dict[]).length > 1 ? `${label} ${row.accountId}` : label, row, now);
      }),
    );
    const messages = (status?.messages ?? {}) as Dict;
    this.counts = {
      "/inbox": Number(messages.unsure ?? 0) + Number(messages.dead ?? 0),
      "/approvals": (Array.isArray(exec) ? exec.length : 0) + (Array.isArray(plugin) ? plugin.length : 0),
    };
    this.host.requestUpdate();
  }

  private async ask(method: string): Promise<any> {
    try {
      return gateway.knows(method) ? await gateway.call(method) : undefined;
    } catch (fault) {
      if (fault instanceof Refused) return undefined;
      throw fault;
    }
  }

  show(): unknown {
    if (!this.links.length) return nothing;
    return html`<h2>${t("group.links")}</h2>${this.links.map((link) => html`<div class="link">${dot(link.state)}<span>${link.name}</span><span>${link.words}</span></div>`)}`;
  }
}
