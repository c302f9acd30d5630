/** Every account of every chat channel as it stands, who asks to come in, and who was let in. */
import { html, nothing, type TemplateResult } from "lit";

import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { ago, clock, when } from "../lib/format";
import { gateway } from "../lib/house";
import type { Dict } from "../lib/wire";
import { named, t } from "../lib/words";
import { tried } from "../ui/act";
import { sure } from "../ui/dialog";
import { dot, empty, notice, table } from "../ui/parts";

const DOTS: Record<string, "ok" | "warn" | "bad" | "off"> = {
  connected: "ok", starting: "warn", waiting: "warn", stalled: "bad", refused: "bad", stopped: "off",
};
const OWN = "webchat";

interface Told {
  status: Dict;
  pairing: Dict;
}

class Channels extends Page {
  private told = new Loaded<Told>(this, () => this.read(), { on: ["channels.changed", "channels.pairing.requested", "channels.pairing.resolved", "health"] });

  private async read(): Promise<Told> {
    const none = { requests: [], people: [] } as Dict;
    const [status, pairing] = await Promise.all([
      gateway.call("channels.status", {}),
      gateway.knows("channels.pairing.list") ? gateway.call("channels.pairing.list", {}) : none,
    ]);
    return { status, pairing };
  }

  override render(): TemplateResult {
    return html`${this.head(t("page.channels"), t("channels.meta"))}<div class="page">${this.told.show((got) => this.body(got))}</div>`;
  }

  private body(got: Told): TemplateResult {
    const names = (got.status.channelOrder as string[]).filter((each) => each !== OWN);
    const requests = (got.pairing.requests ?? []) as Dict[];
    return html`${requests.length ? html`<h2 class="sect">${t("channels.waiting")}</h2>${requests.map((each) => this.request(each))}` : nothing}
      <h2 class="sect">${t("channels.links")}</h2>
      ${names.length ? names.map((each) => html`${((got.status.channelAccounts?.[each] ?? []) as Dict[]).map((row) => this.account(each, String(got.status.channelLabels?.[each] ?? each), row))}`)
        : empty(t("channels.none"), html`${t("channels.none.words")} <code>garra channels add</code>`)}
      <h2 class="sect">${t("channels.people")}</h2>${this.people((got.pairing.people ?? []) as Dict[])}`;
  }

  private request(each: Dict): TemplateResult {
    const who = each.metadata?.name || each.metadata?.username || each.senderId;
    return notice(t("channels.asks", { who, channel: each.channelLabel }), html`${t("channels.asks.words", { id: each.senderId, code: each.code })}
      <span class="quiet">${t("channels.asks.until", { time: clock(Date.parse(each.expiresAt)) })}</span>`, { kind: "warn", action: html`
      <button class="btn p" aria-label=${t("channels.let.of", { who })} @click=${() => void this.let(each, String(who))}>${t("channels.let")}</button>
      <button class="btn q" aria-label=${t("channels.dismiss.of", { who })} @click=${() => void this.dismiss(each)}>${t("channels.dismiss")}</button>` });
  }

  private async let(each: Dict, who: string): Promise<void> {
    await tried("channels.pairing.approve", { channel: each.channel, requestId: each.requestId, accountId: each.accountId, notify: true }, t("channels.let.done", { who }));
    void this.told.reload();
  }

  private async dismiss(each: Dict): Promise<void> {
    await tried("channels.pairing.dismiss", { channel: each.channel, requestId: each.requestId, accountId: each.accountId });
    void this.told.reload();
  }

  private account(channel: string, label: string, row: Dict): TemplateResult {
    const state = String(row.statusState ?? (row.connected ? "connected" : row.running ? "starting" : "stopped"));
    const bad = state === "refused" || state === "stalled";
    const title = row.accountId === "default" ? label : `${label} · ${row.name ?? row.accountId}`;
    const polled = row.lastTransportActivityAt ? t("channels.polled", { time: ago(Number(row.lastTransportActivityAt)) }) : t("channels.polled.never");
    const facts = [row.bot?.username ? `@${row.bot.username}` : row.bot?.name, row.running ? polled : "", row.lastInboundAt ? t("channels.heard", { time: ago(Number(row.lastInboundAt)) }) : "",
      row.dmPolicy ? named(`channels.policy.${row.dmPolicy}`, String(row.dmPolicy)) : ""].filter(Boolean);
    return html`<article class="card ${bad ? "bad" : ""}"><div>${dot(DOTS[state] ?? "off")} <b>${title}</b> <span class="tag ${bad ? "bad" : state === "connected" ? "ok" : ""}">${named(`channels.is.${state}`, state)}</span></div>
      <div class="small quiet">${facts.join(" · ")}</div>
      ${row.lastError && state !== "connected" ? html`<p class="small">${String(row.lastError).replace(/[.\s]*$/, ".")}${row.nextStartAt ? ` ${t("channels.again", { time: clock(Number(row.nextStartAt)) })}` : ""}</p>` : nothing}
      ${row.note ? html`<p class="small">${row.note}</p>` : nothing}
      <div class="go">${row.running ? html`<button class="btn" aria-label=${t("channels.stop.of", { name: title })} @click=${() => void this.act("stop", channel, row, title)}>${t("do.stop")}</button>`
        : html`<button class="btn" aria-label=${t("channels.start.of", { name: title })} @click=${() => void this.act("start", channel, row, title)}>${t("channels.start")}</button>`}</div></article>`;
  }

  private async act(what: "start" | "stop", channel: string, row: Dict, name: string): Promise<void> {
    if (what === "stop" && !(await sure(t("channels.stop.of", { name }), t("channels.stop.words"), t("do.stop")))) return;
    await tried(`channels.${what}`, { channel, accountId: row.accountId });
    void this.told.reload();
  }

  private people(rows: Dict[]): TemplateResult {
    if (!rows.length) return html`<p class="quiet">${t("channels.people.none")}</p>`;
    return table(t("channels.people"), [
      { name: t("channels.who"), show: (row: Dict) => html`${row.name || row.senderId}<div class="small quiet">${row.senderId}</div>` },
      { name: t("channels.where"), show: (row: Dict) => (row.accountId === "default" ? row.channel : `${row.channel} · ${row.accountId}`) },
      { name: t("channels.since"), show: (row: Dict) => when(Date.parse(row.approvedAt)), right: true },
      { name: t("channels.act"), show: (row: Dict) => html`<button class="btn" aria-label=${t("channels.revoke.of", { who: row.name || row.senderId })} @click=${() => void this.revoke(row)}>${t("channels.revoke")}</button>`, right: true },
    ], rows);
  }

  private async revoke(row: Dict): Promise<void> {
    const who = row.name || row.senderId;
    if (!(await sure(t("channels.revoke.of", { who }), t("channels.revoke.words"), t("channels.revoke")))) return;
    await tried("channels.pairing.revoke", { channel: row.channel, senderId: row.senderId, accountId: row.accountId }, t("channels.revoked", { who }));
    void this.told.reload();
  }
}

customElements.define("page-channels", Channels);
