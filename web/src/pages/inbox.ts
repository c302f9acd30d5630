/** Every message, from arrival to the confirmed reply: what needs a person first, then what goes on, then the past. */
import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";

import "./inbox.css";
import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { to } from "../app/router";
import { clock, lasted, money, when } from "../lib/format";
import { gateway } from "../lib/house";
import { holds, mails, median, type Mail } from "../lib/mail";
import { story, widths, type Story } from "../lib/track";
import { Refused, type Dict } from "../lib/wire";
import { t } from "../lib/words";
import { empty } from "../ui/parts";
import { styled } from "../ui/styled";
import { Windowed } from "../ui/window";
import { answer, ask, pending, type Question } from "./chat/ask";
import { act, open, stop } from "./inbox/story";

const MOST = 1000; // messages that one look brings
const RUNNING_MS = 2_000;
const AT_ONCE = 12; // ways that are asked for and not yet there
const SETTLE_MS = 120; // what is scrolled past in less is not asked for, and what comes in that time is shown at once
const ENDS = new Set(["final", "error", "aborted"]);
const MARKS: Record<string, string> = {
  telegram: "TG", matrix: "MX", irc: "IRC", email: "@", discord: "DC", slack: "SL", xmpp: "XM", webchat: "WEB", webhook: "WH",
};

/** A channel as people write it. */
function named(channel: string): string {
  return channel === "irc" || channel === "xmpp" ? channel.toUpperCase() : channel.slice(0, 1).toUpperCase() + channel.slice(1);
}

interface Told {
  mails: Mail[];
  questions: Question[];
}

class Inbox extends Page {
  private search = "";
  private channel = "";
  /** What was spent today; null while that is not known. */
  private cost: number | null = null;
  private stories = new Map<string, { moved: number; story: Story }>();
  private asking = new Set<string>();
  private later: ReturnType<typeof setTimeout> | undefined;
  private drawn: ReturnType<typeof setTimeout> | undefined;
  private doing = new Map<string, string>();
  private past: Mail[] = [];
  private ids: readonly string[] = [];
  private view = new Windowed(this, () => this.ids);
  private told = new Loaded<Told>(this, () => this.read(), {
    on: ["exec.approval.requested", "exec.approval.resolved", "plugin.approval.requested", "plugin.approval.resolved", "sessions.changed"],
    pauseMs: 500,
  });

  constructor() {
    super();
    this.view.atEnd = false;
  }

  protected override begin(): void {
    this.hear("chat", (payload) => ENDS.has(payload.state) && this.told.soon());
    this.hear("agent", (payload) => this.does(payload));
    const timer = setInterval(() => {
      if (this.told.value?.mails.some((mail) => mail.standing === "now") && !document.hidden) this.told.soon();
    }, RUNNING_MS);
    this.until(() => clearInterval(timer));
  }

  private async read(): Promise<Told> {
    const ask = { limit: MOST, ...(this.channel ? { channel: this.channel } : {}) };
    const [list, questions] = await Promise.all([
      gateway.call("messages.list", ask),
      pending(),
      gateway.call("sessions.subscribe", {}),
    ]);
    void this.spent().then((cost) => {
      this.cost = cost;
      this.change();
    });
    return { mails: mails(list.messages as Dict[]), questions };
  }

  private async spent(): Promise<number | null> {
    try {
      const got = gateway.knows("usage.report") ? await gateway.call("usage.report", { by: "day", days: 1 }) : null;
      return got ? Number(got.totals?.totalCost ?? got.totals?.cost ?? 0) : null;
    } catch (fault) {
      if (fault instanceof Refused) return null;
      throw fault;
    }
  }

  /** What a run does now, in a few words. */
  private does(payload: Dict): void {
    const data = (payload.data ?? {}) as Dict;
    if (payload.stream === "item" && data.phase === "start") this.doing.set(String(payload.runId), String(data.title ?? data.name));
    else if (payload.stream === "assistant") this.doing.set(String(payload.runId), t("inbox.writes"));
    else if (payload.stream === "lifecycle" && data.phase === "end") this.doing.delete(String(payload.runId));
    else return;
    this.change();
  }

  private get shown(): Mail[] {
    const all = this.told.value?.mails ?? [];
    return this.search ? all.filter((mail) => holds(mail, this.search)) : all;
  }

  override willUpdate(): void {
    this.past = this.shown.filter((mail) => mail.standing === "past");
    this.ids = this.past.map((mail) => mail.id);
  }

  override updated(): void {
    const scroller = this.closest<HTMLElement>(".content");
    const body = this.querySelector<HTMLElement>(".page");
    if (scroller && body) this.view.attach(scroller, body);
    this.later ??= setTimeout(() => {
      this.later = undefined;
      void this.follow();
    }, SETTLE_MS);
  }

  /** Read the way of what is in view. */
  private async follow(): Promise<void> {
    const seen = [...this.shown.filter((mail) => mail.standing !== "past"), ...this.past.slice(this.view.first, this.view.last)];
    for (const mail of seen) {
      if (this.stories.get(mail.id)?.moved === mail.moved && mail.standing !== "now") continue;
      if (this.asking.has(mail.id) || gateway.state !== "open") continue;
      if (this.asking.size >= AT_ONCE) break;
      if (mail.standing === "now" && this.stories.get(mail.id) && Date.now() - this.told.at > RUNNING_MS) continue;
      this.asking.add(mail.id);
      void this.ask(mail);
    }
  }

  private async ask(mail: Mail): Promise<void> {
    try {
      const got = await gateway.call("messages.get", { id: mail.id });
      this.stories.set(mail.id, { moved: mail.moved, story: story(got.timeline as Dict[], mail.standing === "now", Date.now()) });
      this.drawn ??= setTimeout(() => {
        this.drawn = undefined;
        this.change();
      }, SETTLE_MS);
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      this.stories.set(mail.id, { moved: mail.moved, story: story([], false, Date.now()) });
    } finally {
      // One that goes on is asked again with the next look, not at once.
      setTimeout(() => this.asking.delete(mail.id), mail.standing === "now" ? RUNNING_MS : 0);
    }
  }

  override key(key: string): boolean {
    const rows = [...this.querySelectorAll<HTMLElement>(".mail")];
    const at = rows.findIndex((row) => row === document.activeElement);
    if (key === "j" || key === "k") {
      const next = at < 0 ? rows[0] : rows[Math.max(0, Math.min(rows.length - 1, at + (key === "j" ? 1 : -1)))];
      next?.focus();
      next?.scrollIntoView({ block: "nearest" });
      return true;
    }
    const first = this.told.value?.questions[0];
    if (key === "a" && first) {
      void answer(first, "allow-once");
      return true;
    }
    return false;
  }

  override render(): TemplateResult {
    const channels = [...new Set((this.told.value?.mails ?? []).map((mail) => mail.channel))].sort();
    const actions = html`<label class="unseen" for="seek">${t("inbox.search")}</label>
      <input class="input" id="seek" type="search" placeholder=${t("do.search")} @input=${(event: Event) => { this.search = (event.target as HTMLInputElement).value.trim(); this.change(); }}>
      <label class="unseen" for="where">${t("inbox.channels")}</label>
      <select class="input" id="where" @change=${(event: Event) => { this.channel = (event.target as HTMLSelectElement).value; void this.told.reload(); }}>
        <option value="">${t("inbox.all")}</option>${channels.map((name) => html`<option ?selected=${name === this.channel}>${name}</option>`)}</select>`;
    return html`${this.head(t("page.inbox"), t("inbox.meta"), actions)}<div class="page">${this.told.show((told) => this.all(told))}</div>`;
  }

  private all(told: Told): TemplateResult {
    const shown = this.shown;
    const needs = shown.filter((mail) => mail.standing === "bad" || mail.standing === "unsure");
    const now = shown.filter((mail) => mail.standing === "now");
    const nothingYet = !told.mails.length && !told.questions.length;
    return html`${nothingYet ? nothing : this.stats(told)}
      ${needs.length || told.questions.length ? html`<h2 class="sect">${t("inbox.needs")}</h2>` : nothing}
      ${repeat(told.questions, (each) => each.id, (each) => ask(each, html`<p><a href=${to(`/chat/${encodeURIComponent(each.sessionKey)}`)}>${t("inbox.asks")}</a></p>`))}
      <div class="mails">${repeat(needs, (mail) => mail.id, (mail) => html`<div>${this.row(mail)}</div>`)}</div>
      ${now.length ? html`<h2 class="sect">${t("inbox.now")}</h2><div class="mails">${repeat(now, (mail) => mail.id, (mail) => html`<div>${this.row(mail)}</div>`)}</div>` : nothing}
      ${this.past.length ? html`<h2 class="sect">${t("inbox.earlier")}</h2>` : nothing}
      <div data-space="above"></div>
      <div class="mails">${repeat(this.past.slice(this.view.first, this.view.last), (mail) => mail.id, (mail) => html`<div data-row=${mail.id}>${this.row(mail)}</div>`)}</div>
      <div data-space="below"></div>
      ${nothingYet ? empty(t("inbox.empty"), t("inbox.empty.words"), html`<a class="btn p" href=${to("/chat")}>${t("inbox.begin")}</a>`) : nothing}
      ${!nothingYet && !shown.length && this.search ? empty(t("find.none"), t("inbox.none", { n: MOST })) : nothing}`;
  }

  private stats(told: Told): TemplateResult {
    const day = new Date();
    day.setHours(0, 0, 0, 0);
    const today = told.mails.filter((mail) => mail.at >= day.getTime() && !mail.out);
    const answered = today.filter((mail) => mail.standing === "past").length;
    const middle = median(today.map((mail) => this.stories.get(mail.id)?.story.first ?? mail.took).filter((ms) => ms !== null && ms !== undefined) as number[]);
    const facts: Array<[string, string]> = [
      [String(today.length), t("inbox.today")], [String(answered), t("inbox.done")],
      [middle === null ? "–" : lasted(middle), t("inbox.median")], [this.cost === null ? "–" : money(this.cost), t("inbox.cost")],
    ];
    return html`<div class="stats">${facts.map(([value, name]) => html`<div class="stat"><b>${value}</b><span>${name}</span></div>`)}</div>`;
  }

  private row(mail: Mail): TemplateResult {
    const see = () => void open(mail, () => this.told.soon());
    const mine = mail.channel === "webchat";
    const place = [mine ? t("inbox.page") : named(mail.channel), mail.who !== mail.chat && !mine ? mail.chat : "", mail.thread].filter(Boolean).join(", ");
    const files = mail.files ? t("inbox.files", { n: mail.files }) : "";
    return html`<article class="mail ${mail.standing}" tabindex="0" aria-label=${t("inbox.of", { who: mine ? t("inbox.you") : mail.who })}
        @click=${see} @keydown=${(event: KeyboardEvent) => event.key === "Enter" && event.target === event.currentTarget && see()}>
      <div class="ch" aria-hidden="true">${MARKS[mail.channel] ?? mail.channel.slice(0, 2).toUpperCase()}</div>
      <div><div class="who">${mine ? t("inbox.you") : mail.out ? t("inbox.to", { who: mail.who }) : mail.who} <span>${place}</span></div>
        ${mail.reason && mail.standing !== "past" ? html`<div class="why">${mail.standing === "unsure" ? t("inbox.unsure.words") : ""} ${mail.reason}</div>` : html`<div class="txt">${[mail.text, files].filter(Boolean).join(" ")}</div>`}</div>
      <div class="tr">${this.track(mail)}</div>
      <div class="when" @click=${(event: Event) => event.stopPropagation()}>${this.deed(mail)}</div></article>`;
  }

  private track(mail: Mail): TemplateResult {
    const known = this.stories.get(mail.id)?.story;
    const pieces = known?.pieces.length ? known.pieces : [{ kind: mail.standing === "bad" ? "bad" as const : mail.standing === "unsure" ? "unsure" as const : "wait" as const, ms: 1 }];
    const wide = widths(pieces);
    return html`<div class="track" aria-hidden="true">${pieces.map((piece, at) => html`<i class="seg ${piece.kind}" ${styled({ flexGrow: String(wide[at]) })}></i>`)}</div>
      <div class="lbl"><span>${this.way(mail, known)}</span><span>${this.end(mail, known)}</span></div>`;
  }

  private way(mail: Mail, known: Story | undefined): string {
    if (mail.standing === "now") return this.doing.get(mail.runId) ?? (mail.out ? t("inbox.sends") : t("inbox.works"));
    if (mail.standing !== "past") return t("inbox.received", { time: clock(mail.at) });
    const parts = [known?.model ? t("inbox.model", { time: lasted(known.model) }) : "", known?.tool ? t("inbox.tool", { time: lasted(known.tool) }) : ""];
    return parts.filter(Boolean).join(", ") || t("inbox.received", { time: clock(mail.at) });
  }

  private end(mail: Mail, known: Story | undefined): string {
    if (mail.standing === "bad") return mail.tries > 1 ? t("inbox.failed.times", { n: mail.tries }) : t("inbox.failed");
    if (mail.standing === "unsure") return t("inbox.unsure");
    if (mail.standing === "now") return lasted(Date.now() - mail.at);
    if (mail.answers || mail.out) return t("inbox.confirmed");
    return known ? lasted(known.total) : "";
  }

  private deed(mail: Mail): unknown {
    if (mail.standing === "bad") return html`<button class="btn" @click=${() => void act("messages.retry", mail.mend).then(() => this.told.soon())}>${t("do.again")}</button>`;
    if (mail.standing === "unsure") return html`<button class="btn" @click=${() => void open(mail, () => this.told.soon())}>${t("inbox.look")}</button>`;
    if (mail.standing === "now" && mail.sessionKey) return html`<button class="btn q" @click=${() => void stop(mail)}>${t("do.stop")}</button>`;
    return when(mail.at);
  }
}

customElements.define("page-inbox", Inbox);
