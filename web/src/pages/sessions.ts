/** Every conversation there is: found, named, put away, taken along. */
import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";

import "./sessions.css";
import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { go, to } from "../app/router";
import { count, money, plain, when } from "../lib/format";
import { gateway } from "../lib/house";
import type { Dict } from "../lib/wire";
import { t } from "../lib/words";
import { tried } from "../ui/act";
import { sheet, sure } from "../ui/dialog";
import { empty } from "../ui/parts";
import { Windowed } from "../ui/window";

const MOST = 5_000; // conversations that one look brings
const PAGE = 1_000;

class Sessions extends Page {
  private search = "";
  private away = false;
  private shown: Dict[] = [];
  private ids: readonly string[] = [];
  private view = new Windowed(this, () => this.ids);
  private list = new Loaded<Dict[]>(this, () => this.read(), { on: ["sessions.changed"], pauseMs: 800 });

  constructor() {
    super();
    this.view.atEnd = false;
  }

  private async read(): Promise<Dict[]> {
    void gateway.call("sessions.subscribe", {}).catch(() => null);
    const all: Dict[] = [];
    for (let offset: number | null = 0; offset !== null && all.length < MOST; ) {
      const got: Dict = await gateway.call("sessions.list", { limit: PAGE, offset, archived: this.away, includeDerivedTitles: true, includeLastMessage: true });
      all.push(...(got.sessions as Dict[]));
      offset = got.hasMore ? Number(got.nextOffset) : null;
    }
    return all;
  }

  override willUpdate(): void {
    const wanted = this.search.toLowerCase();
    const holds = (row: Dict) => `${named(row)} ${row.key} ${row.lastMessagePreview ?? ""}`.toLowerCase().includes(wanted);
    this.shown = (this.list.value ?? []).filter((row) => !wanted || holds(row));
    this.ids = this.shown.map((row) => String(row.key));
  }

  override updated(): void {
    const scroller = this.closest<HTMLElement>(".content");
    const body = this.querySelector<HTMLElement>(".page");
    if (scroller && body) this.view.attach(scroller, body);
  }

  override render(): TemplateResult {
    const actions = html`<label class="unseen" for="seek">${t("sessions.search")}</label>
      <input class="input" id="seek" type="search" placeholder=${t("do.search")} @input=${(event: Event) => { this.search = (event.target as HTMLInputElement).value.trim(); this.change(); }}>
      <button class="btn" @click=${() => { this.away = !this.away; void this.list.reload(); }}>${this.away ? t("sessions.current") : t("sessions.away")}</button>`;
    return html`${this.head(t("page.sessions"), this.list.value ? t("sessions.meta", { n: count(this.shown.length) }) : nothing, actions)}
      <div class="page">${this.list.show(() => this.all(), 6)}</div>`;
  }

  private all(): TemplateResult {
    if (!this.shown.length) {
      if (this.search) return empty(t("find.none"), t("find.none.words"));
      return this.away ? empty(t("sessions.away.none"), t("sessions.away.words"))
        : empty(t("sessions.none"), t("sessions.none.words"), html`<a class="btn p" href=${to("/chat")}>${t("inbox.begin")}</a>`);
    }
    return html`<div data-space="above"></div>
      <div class="talks">${repeat(this.shown.slice(this.view.first, this.view.last), (row) => row.key, (row) => html`<div data-row=${row.key}>${this.row(row)}</div>`)}</div>
      <div data-space="below"></div>`;
  }

  private row(row: Dict): TemplateResult {
    const cost = Number(row.estimatedCostUsd ?? 0);
    const facts = [row.isMain ? t("sessions.main") : "", row.agentId, row.model, row.totalTokens ? t("chat.tokens", { n: count(Number(row.totalTokens)) }) : "", cost ? money(cost) : ""];
    return html`<article class="card talk"><div class="what"><a href=${to(`/chat/${encodeURIComponent(row.key)}`)}>${named(row)}</a>
        <div class="cut quiet small">${row.lastMessagePreview ? plain(String(row.lastMessagePreview)) : (named(row) === row.key ? "" : row.key)}</div><div class="small quiet num">${facts.filter(Boolean).join(" · ")}</div></div>
      <div class="num small quiet">${when(Number(row.updatedAt))}</div>
      <button class="btn" aria-label=${t("sessions.more.of", { name: named(row) })} @click=${() => void this.more(row)}>${t("app.more")}</button></article>`;
  }

  /** What can be done with a conversation. */
  private async more(row: Dict): Promise<void> {
    const key = String(row.key);
    const deed = await sheet<string>(named(row), (close) => html`<form @submit=${(event: Event) => { event.preventDefault(); close("name:" + (this.field()?.value ?? "")); }}>
        <div class="field"><label for="talk-name">${t("sessions.name")}</label><input id="talk-name" maxlength="200" .value=${String(row.label ?? "")} placeholder=${named(row)}></div>
        <div class="go"><button class="btn p">${t("sessions.rename")}</button></div></form>
      <p class="small quiet keyname">${key}</p>
      <div class="go"><button class="btn" @click=${() => close("fork")}>${t("sessions.fork")}</button>
        <button class="btn" @click=${() => close("export")}>${t("sessions.export")}</button>
        ${row.isMain ? nothing : html`<button class="btn" @click=${() => close("away")}>${row.archived ? t("sessions.back") : t("sessions.archive")}</button>
        <button class="btn bad" @click=${() => close("delete")}>${t("sessions.delete")}</button>`}
        <button class="btn q" @click=${() => close()}>${t("do.close")}</button></div>`);
    if (!deed) return;
    if (deed.startsWith("name:")) await tried("sessions.patch", { key, label: deed.slice(5).trim() || null }, t("sessions.renamed"));
    if (deed === "away") await tried("sessions.patch", { key, archived: !row.archived }, row.archived ? t("sessions.is.back") : t("sessions.is.away"));
    if (deed === "fork") await this.fork(key);
    if (deed === "export") await this.take(row);
    if (deed === "delete" && (await sure(t("sessions.delete.sure", { name: named(row) }), t("sessions.delete.words"), t("sessions.delete")))) {
      await tried("sessions.delete", { key }, t("sessions.deleted"));
    }
    void this.list.reload();
  }

  private field(): HTMLInputElement | null {
    return document.querySelector("#talk-name");
  }

  private async fork(key: string): Promise<void> {
    const got = await tried("sessions.get", { key });
    const last = ((got?.messages ?? []) as Dict[]).filter((each) => each.role === "assistant" && each.__openclaw?.id).at(-1);
    if (!last) return;
    const made = await tried("sessions.fork", { sessionKey: key, entryId: last.__openclaw.id });
    if (made) go(`/chat/${encodeURIComponent(made.sessionKey)}`);
  }

  /** The conversation as a file of text. */
  private async take(row: Dict): Promise<void> {
    const got = await tried("sessions.get", { key: row.key, limit: 1000 });
    if (!got) return;
    const text = (got.messages as Dict[]).filter((each) => each.role === "user" || each.role === "assistant").map(spoken).filter(Boolean).join("\n\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`# ${named(row)}\n\n${text}\n`], { type: "text/markdown" }));
    link.download = `${named(row).replace(/[^\p{L}\p{N}]+/gu, " ").trim().replaceAll(" ", "-").slice(0, 60)}.md`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}

function named(row: Dict): string {
  return String(row.label ?? row.displayName ?? row.derivedTitle ?? (row.isMain ? t("sessions.main") : row.key));
}

function spoken(message: Dict): string {
  const words = typeof message.content === "string" ? message.content : ((message.content ?? []) as Dict[]).map((part) => part.text ?? "").join("");
  return words ? `## ${message.role === "user" ? t("inbox.you") : "Garra"}, ${when(Number(message.timestamp))}\n\n${words}` : "";
}

customElements.define("page-sessions", Sessions);
