/** The conversation with an agent: what was said, what goes on, what waits for a person, and where to write. */
import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import "./chat.css";
import { Page } from "../app/page";
import { go } from "../app/router";
import { ChatLog, type Item } from "../lib/chatlog";
import { gateway, outbox } from "../lib/house";
import { Refused, type Dict } from "../lib/wire";
import { t } from "../lib/words";
import { sheet } from "../ui/dialog";
import { empty, failed, skeleton } from "../ui/parts";
import { announce, toast } from "../ui/say";
import { Windowed } from "../ui/window";
import { answer, ask, pending, question, type Question } from "./chat/ask";
import "./chat/composer";
import type { Composer, Draft } from "./chat/composer";
import { Find, nameOf } from "./chat/find";
import { running, turn } from "./chat/turn";

const PAGE = 200;
const CHARS = 40_000; // of one text that a page of history brings; the whole is had on request

interface Sent {
  id: string;
  text: string;
  images: string[];
}

class Chat extends Page {
  private log = new ChatLog();
  private session = "";
  private info: Dict = {};
  private defaults: Dict = {};
  private models: Array<{ ref: string; name: string }> = [];
  private fault: Refused | null = null;
  private ready = false;
  private fetching = false;
  private again = false;
  private older = false;
  private questions: Question[] = [];
  /** Taken by the gateway and not yet in the transcript. */
  private sent: Sent[] = [];
  private drawing = 0;
  private ids: readonly string[] = [];
  private view = new Windowed(this, () => this.ids, () => void this.further());

  protected override begin(): void {
    let open = gateway.state === "open";
    this.until(gateway.watch(() => {
      const now = gateway.state === "open";
      if (now && !open && this.session) void this.load();
      open = now;
      this.change();
    }));
    this.until(outbox.watch(() => this.change()));
    for (const event of ["chat", "agent", "session.tool", "session.message"]) {
      this.hear(event, (payload) => this.heard(event, payload));
    }
    this.hear("gap", () => void this.load());
    for (const event of ["exec.approval.requested", "plugin.approval.requested"]) {
      this.hear(event, (row) => this.asked(question(row)));
    }
    for (const event of ["exec.approval.resolved", "plugin.approval.resolved"]) {
      this.hear(event, ({ id }) => this.settled(String(id)));
    }
    this.hear("sessions.changed", (payload) => {
      if (payload.sessionKey !== this.session || !payload.session) return;
      this.info = payload.session as Dict;
      this.change();
    });
  }

  override moved(): void {
    const wanted = this.params.key ?? "";
    if (this.session && (wanted === this.session || (!wanted && this.session === this.main))) {
      const found = this.query.get("message");
      if (found) void this.show(found);
      return;
    }
    this.session = wanted || this.main;
    this.log = new ChatLog();
    this.ready = false;
    this.sent = [];
    this.view.restart();
    void this.load(this.query.get("message") ?? "");
    void this.know();
  }

  private get main(): string {
    const defaults = (gateway.hello?.snapshot.sessionDefaults ?? {}) as Dict;
    return String(defaults.mainSessionKey ?? "main");
  }

  // ---- reading

  private async load(messageId = ""): Promise<void> {
    const session = this.session;
    try {
      const [got] = await Promise.all([
        gateway.call("chat.history", { sessionKey: session, limit: PAGE, maxChars: CHARS, ...(messageId ? { messageId } : {}) }),
        gateway.call("sessions.subscribe", {}),
        gateway.call("sessions.messages.subscribe", { key: session }).catch(() => undefined),
      ]);
      if (session !== this.session) return;
      this.session = String(got.sessionKey ?? session);
      this.log.load(got);
      this.take(got);
      this.fault = null;
      if (messageId) void this.show(messageId);
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      if (session === this.session && fault.code !== "OFFLINE") this.fault = fault;
    }
    this.ready = true;
    this.change();
    void this.questioned();
  }

  private take(got: Dict): void {
    this.info = (got.sessionInfo as Dict | undefined) ?? this.info;
    this.defaults = (got.defaults as Dict | undefined) ?? this.defaults;
    const known = new Set(this.log.rows.map((row) => String(row.__openclaw?.idempotencyKey ?? "").replace(/:user$/, "")));
    this.sent = this.sent.filter((each) => !known.has(each.id));
  }

  /** What came since; asked once more when another end came meanwhile. */
  private async news(): Promise<void> {
    this.again = true;
    if (this.fetching) return;
    this.fetching = true;
    const session = this.session;
    try {
      while (this.again && session === this.session) {
        this.again = false;
        const how = this.log.cursor ? { cursor: this.log.cursor } : { limit: PAGE };
        const got = await gateway.call("chat.history", { sessionKey: session, maxChars: CHARS, ...how });
        if (session !== this.session) return;
        this.log.since(got);
        this.take(got);
        this.change();
      }
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
    } finally {
      this.fetching = false;
    }
  }

  private async further(): Promise<void> {
    if (this.older || !this.log.before || !this.ready) return;
    this.older = true;
    try {
      this.log.older(await gateway.call("chat.history", {
        sessionKey: this.session, limit: PAGE, maxChars: CHARS, offset: this.log.total - this.log.before,
      }));
      this.change();
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
    } finally {
      this.older = false;
    }
  }

  private whole = async (id: string): Promise<void> => {
    const got = await gateway.call("chat.message.get", { sessionKey: this.session, messageId: id });
    if (got.ok) this.log.put(got.message);
    else toast(t("chat.gone"));
    this.change();
  };

  private async show(messageId: string): Promise<void> {
    if (!this.log.rows.some((row) => row.__openclaw?.id === messageId)) {
      await this.load(messageId);
      return;
    }
    await this.updateComplete;
    const item = this.log.items.find((each) => each.id === messageId) ?? this.holding(messageId);
    if (item) this.view.reveal(item.id);
  }

  private holding(messageId: string): Item | undefined {
    return this.log.items.find((item) => item.blocks.some((block) => block.id.startsWith(`${messageId}:`)));
  }

  private async know(): Promise<void> {
    try {
      const got = await gateway.call("models.list", {});
      this.models = (got.models as Dict[]).map((row) => ({
        ref: String(row.id).startsWith(`${row.provider}/`) ? String(row.id) : `${row.provider}/${row.id}`, name: String(row.name ?? row.id),
      }));
      this.change();
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
    }
  }

  private async questioned(): Promise<void> {
    try {
      this.questions = await pending();
      this.change();
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
    }
  }

  // ---- what happens

  private heard(event: string, payload: Dict): void {
    if (payload.sessionKey !== this.session) return;
    const ended = this.log.hear(event, payload);
    if (event === "session.message") this.take({});
    if (ended) {
      this.sent = this.sent.filter((each) => each.id !== payload.runId);
      const text = String(payload.message?.content?.[0]?.text ?? payload.errorMessage ?? "");
      announce(t("chat.answered", { text: text.slice(0, 400) }));
      void this.news();
    }
    this.drawing ||= requestAnimationFrame(() => {
      this.drawing = 0;
      this.change();
    });
  }

  private asked(of: Question): void {
    this.questions = [...this.questions.filter((each) => each.id !== of.id), of];
    if (of.sessionKey === this.session) announce(t("ask.said", { what: of.command.slice(0, 200) }), true);
    this.change();
  }

  private settled(id: string): void {
    this.questions = this.questions.filter((each) => each.id !== id);
    this.change();
  }

  private say = (event: CustomEvent<Draft>): void => {
    const { text, attachments } = event.detail;
    const id = crypto.randomUUID();
    const params: Dict = attachments.length ? { attachments } : {};
    if (this.log.live && !this.log.live.ended) params.queueMode = this.composer?.queue || "steer";
    this.sent = [...this.sent, { id, text, images: attachments.map((each) => `data:${each.mimeType};base64,${each.content}`) }];
    outbox.add({ id, sessionKey: this.session, message: text, at: Date.now(), params });
    this.view.toEnd();
    this.change();
  };

  private stop = async (): Promise<void> => {
    try {
      await gateway.call("chat.abort", { sessionKey: this.session });
    } catch (fault) {
      if (fault instanceof Refused) toast(fault.message);
      else throw fault;
    }
  };

  private model = async (event: CustomEvent<string>): Promise<void> => {
    try {
      const got = await gateway.call("sessions.patch", { key: this.session, model: event.detail });
      this.info = { ...this.info, ...((got.entry as Dict | undefined) ?? {}), ...((got.resolved as Dict | undefined) ?? {}) };
      toast(t("chat.model.set", { name: event.detail }));
    } catch (fault) {
      if (fault instanceof Refused) toast(fault.message);
      else throw fault;
    }
    this.change();
  };

  private fresh = async (): Promise<void> => {
    try {
      const got = await gateway.call("sessions.create", { agentId: this.agent });
      go(`/chat/${encodeURIComponent(String(got.key))}`);
      this.composer?.focusText();
    } catch (fault) {
      if (fault instanceof Refused) toast(fault.message);
      else throw fault;
    }
  };

  private find(): void {
    void sheet<{ key: string; messageId: string }>(t("find.title"), (close) => {
      const find = new Find();
      find.open = (key, messageId = "") => close({ key, messageId });
      return html`${find}<div class="go"><button class="btn" @click=${() => close()}>${t("do.close")}</button></div>`;
    }).then((to) => {
      if (to) go(`/chat/${encodeURIComponent(to.key)}${to.messageId ? `?message=${encodeURIComponent(to.messageId)}` : ""}`);
    });
  }

  override key(key: string, event: KeyboardEvent): boolean {
    const live = this.log.live && !this.log.live.ended;
    if (key === "/") this.find();
    else if (key === "j" || key === "k") this.step(key === "j" ? 1 : -1);
    else if (key === "a" && this.here[0]) void answer(this.here[0], "allow-once");
    else if (key === "Escape" && live && !(event.target as HTMLElement).closest?.("select")) void this.stop();
    else if (key === "Enter" || key === "i") this.composer?.focusText();
    else return false;
    return true;
  }

  private step(by: number): void {
    const turns = [...this.querySelectorAll<HTMLElement>(".chat article")];
    const at = turns.findIndex((each) => each === document.activeElement);
    const next = at < 0 ? turns.at(by > 0 ? 0 : -1) : turns[Math.max(0, Math.min(turns.length - 1, at + by))];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  }

  // ---- showing

  private get composer(): Composer | null {
    return this.querySelector<Composer>("chat-composer");
  }

  private get agent(): string {
    return String(this.info.agentId ?? this.session.split(":")[1] ?? "main");
  }

  private get here(): Question[] {
    return this.questions.filter((each) => each.sessionKey === this.session);
  }

  override willUpdate(): void {
    this.ids = this.log.items.map((item) => item.id);
  }

  override updated(): void {
    const scroller = this.closest<HTMLElement>(".content");
    const body = this.querySelector<HTMLElement>(".chat");
    if (scroller && body) this.view.attach(scroller, body);
  }

  override render(): TemplateResult {
    const name = Object.keys(this.info).length ? nameOf(this.info) : "";
    return html`${this.top(name)}
      <div class="chat" role="log" aria-live="off" aria-label=${t("chat.log")}>${this.body()}</div>
      ${this.view.atEnd ? nothing : html`<button class="btn tobottom" @click=${() => { this.view.toEnd(); this.change(); }}>${t("chat.newest")}</button>`}
      <div class="compose"><chat-composer .busy=${!!this.log.live && !this.log.live.ended} .models=${this.models} .model=${this.chosen}
        .agent=${this.agent} .permission=${t("compose.guarded")} @say=${this.say} @stop=${this.stop} @model=${this.model}></chat-composer></div>`;
  }

  private get chosen(): string {
    const row = this.info.model ? this.info : this.defaults;
    return `${row.modelProvider ?? ""}/${row.model ?? ""}`;
  }

  private top(name: string): TemplateResult {
    const used = Number(this.info.totalTokens ?? 0);
    const room = Number(this.info.contextTokens ?? 0);
    const share = used && room ? t("chat.context", { n: Math.min(100, Math.round((100 * used) / room)) }) : "";
    const title = html`<button class="name" aria-haspopup="dialog" title=${t("find.title")} @click=${() => this.find()}>${name || t("page.chat")}</button>`;
    return html`<header class="head"><h1>${title}</h1><span class="meta">${t("chat.agent", { name: this.agent })}</span><span class="grow"></span>
      <span class="meta num">${share}</span><button class="btn q" @click=${() => this.find()}>${t("do.search")}</button>
      <button class="btn" @click=${this.fresh}>${t("do.new")}</button></header>`;
  }

  private body(): unknown {
    if (this.fault) return failed(this.fault, () => void this.load());
    if (!this.ready) return skeleton(5);
    const { items, live } = this.log;
    const waiting = this.waiting();
    if (!items.length && !live && !waiting.length && !this.here.length) return empty(t("chat.empty"), t("chat.empty.words"));
    return html`${this.log.before ? html`<p class="aside small quiet" role="status">${t("chat.older", { n: this.log.before })}</p>` : nothing}
      <div data-space="above"></div>
      ${repeat(items.slice(this.view.first, this.view.last), (item) => item.id, (item) => html`<div data-row=${item.id}>${turn(item, this.whole)}</div>`)}
      <div data-space="below"></div>
      ${live && !(this.here.length && !live.blocks.length && !live.met) ? html`<div class="livebox">${running(live)}</div>` : nothing}
      ${repeat(this.here, (each) => each.id, (each) => ask(each))}
      ${waiting}`;
  }

  /** What is on its way into the conversation: not taken yet, refused, or taken and waiting for its turn. */
  private waiting(): TemplateResult[] {
    const unsent = new Map(outbox.of(this.session).map((said) => [said.id, said]));
    const known = new Set(this.sent.map((each) => each.id));
    const all: Sent[] = [...this.sent, ...[...unsent.values()].filter((said) => !known.has(said.id)).map((said) => ({ id: said.id, text: said.message, images: [] }))];
    return all.map((each) => {
      const said = unsent.get(each.id);
      const state = said?.fault ? said.fault : said ? (gateway.state === "open" ? t("chat.sending") : t("chat.offline")) : t("chat.queued");
      return html`<div class="waits"><div class="me queued">${each.images.map((source) => html`<img src=${source} alt=${t("chat.picture")}>`)}<div class="said">${each.text}</div></div>
        <p class="queued-line">${state} ${said?.fault ? html`<button class="btn q" @click=${() => outbox.retry(each.id)}>${t("do.again")}</button>
          <button class="btn q" @click=${() => this.forget(each.id)}>${t("do.drop")}</button>` : nothing}</p></div>`;
    });
  }

  private forget(id: string): void {
    outbox.drop(id);
    this.sent = this.sent.filter((each) => each.id !== id);
    this.change();
  }
}

customElements.define("page-chat", Chat);
