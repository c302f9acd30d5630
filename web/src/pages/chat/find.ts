/** `<chat-find>`: conversations by their name, and words said in any of them. */
import { html, nothing } from "lit";
import { Part } from "../../app/page";
import { gateway } from "../../lib/house";
import { plain, when } from "../../lib/format";
import { Refused, type Dict } from "../../lib/wire";
import { t } from "../../lib/words";
import { empty } from "../../ui/parts";

const PAUSE_MS = 200;

/** How a conversation is called. */
export function nameOf(row: Dict): string {
  return String(row.label ?? row.displayName ?? row.derivedTitle ?? (row.isMain || /^agent:[^:]+:main$/.test(String(row.key)) ? t("sessions.main") : row.key ?? ""));
}

export class Find extends Part {
  /** Called with the session, and the message where one was found. */
  open: (key: string, messageId?: string) => void = () => {};
  private sessions: Dict[] = [];
  private passages: Dict[] = [];
  private asked = "";
  private looks = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  protected override begin(): void {
    void this.look("");
  }

  override render() {
    return html`<div class="field"><label for="find">${t("find.label")}</label>
        <input id="find" type="search" autocomplete="off" autofocus @input=${this.typed}></div>
      <p class="small quiet" role="status">${this.looks && this.asked ? t("find.looking") : nothing}</p>
      ${this.sessions.length ? html`<h3 class="sect">${t("find.sessions")}</h3><ul class="rows">${this.sessions.map((row) => html`<li>
        <button class="hit" @click=${() => this.open(String(row.key))}><b class="cut">${nameOf(row)}</b><span class="quiet num">${when(Number(row.updatedAt))}</span>
        <span class="cut quiet">${row.lastMessagePreview ? plain(String(row.lastMessagePreview)) : row.key}</span></button></li>`)}</ul>` : nothing}
      ${this.passages.length ? html`<h3 class="sect">${t("find.said")}</h3><ul class="rows">${this.passages.map((hit) => html`<li>
        <button class="hit" @click=${() => this.open(String(hit.sessionKey), String(hit.messageId))}><b class="cut">${plain(String(hit.snippet))}</b>
        <span class="quiet num">${when(Number(hit.timestamp))}</span></button></li>`)}</ul>` : nothing}
      ${!this.looks && !this.sessions.length && !this.passages.length ? empty(t("find.none"), t("find.none.words")) : nothing}`;
  }

  private typed = (event: Event): void => {
    clearTimeout(this.timer);
    const text = (event.target as HTMLInputElement).value.trim();
    this.timer = setTimeout(() => void this.look(text), PAUSE_MS);
  };

  /** One search at a time: what was typed meanwhile is looked for when it is done. */
  private async look(text: string): Promise<void> {
    this.asked = text;
    if (this.looks) return;
    this.looks = true;
    this.requestUpdate();
    try {
      await this.seek(text);
    } finally {
      this.looks = false;
      this.requestUpdate();
    }
    if (this.asked !== text) void this.look(this.asked);
  }

  private async seek(text: string): Promise<void> {
    try {
      const [list, said] = await Promise.all([
        gateway.call("sessions.list", { limit: 20, includeLastMessage: true, includeDerivedTitles: true, ...(text ? { search: text } : {}) }),
        text.length > 1 ? gateway.call("sessions.search", { query: text, limit: 15 }) : Promise.resolve({ results: [] }),
      ]);
      if (this.asked !== text) return;
      this.sessions = list.sessions as Dict[];
      this.passages = said.results as Dict[];
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
    }
    this.requestUpdate();
  }
}

customElements.define("chat-find", Find);
