/** The gateway's log as it grows. */
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";

import "./logs.css";
import { Page } from "../app/page";
import { gateway } from "../lib/house";
import { Refused, type Dict } from "../lib/wire";
import { named, t } from "../lib/words";
import { empty, failed, skeleton } from "../ui/parts";
import { toast } from "../ui/say";

const LEVELS = ["debug", "info", "warn", "error"];
const KEPT = 5_000; // lines that stay
const SHOWN = 800; // of those that fit, the newest stand in the page
const EVERY_MS = 1_500;
const MOST_BYTES = 1_000_000;

interface Line {
  at: string;
  level: string;
  where: string;
  text: string;
  raw: string;
}

/** A line of the log, which is JSON; one that is not is shown as it is. */
export function read(raw: string): Line {
  try {
    const row = JSON.parse(raw) as Dict;
    const level = String(row.level ?? "info").replace("warning", "warn");
    return { at: String(row.time ?? "").slice(11, 19), level, where: String(row.subsystem ?? ""), text: String(row.message ?? ""), raw };
  } catch {
    return { at: "", level: "info", where: "", text: raw, raw };
  }
}

class Logs extends Page {
  private lines: Line[] = [];
  private cursor: number | undefined;
  private least = "info";
  private search = "";
  private paused = false;
  private fault: Refused | null = null;
  private began = false;
  private reading = false;

  protected override begin(): void {
    const timer = setInterval(() => void this.more(), EVERY_MS);
    this.until(() => clearInterval(timer));
    void this.more();
  }

  private async more(): Promise<void> {
    if (this.paused || this.reading || document.hidden || (gateway.state !== "open" && this.began)) return;
    this.reading = true;
    try {
      const got = await gateway.call("logs.tail", this.cursor === undefined ? { limit: 500 } : { cursor: this.cursor, limit: KEPT, maxBytes: MOST_BYTES });
      if (got.reset) this.lines = [];
      const missed = this.cursor !== undefined && got.truncated === true;
      this.cursor = Number(got.cursor);
      const fresh = (got.lines as string[]).map(read);
      if (missed) fresh.unshift({ at: "", level: "warn", where: "", text: t("logs.missed"), raw: t("logs.missed") });
      if (fresh.length || !this.began || this.fault) {
        this.lines = [...this.lines, ...fresh].slice(-KEPT);
        this.fault = null;
        this.began = true;
        this.change();
      }
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      this.fault = fault;
      this.change();
    } finally {
      this.reading = false;
    }
  }

  private get fitting(): Line[] {
    const floor = LEVELS.indexOf(this.least);
    return this.lines.filter((each) => LEVELS.indexOf(each.level) >= floor && (!this.search || each.raw.toLowerCase().includes(this.search)));
  }

  override willUpdate(_: PropertyValues): void {
    const box = this.querySelector(".log");
    this.atEnd = !box || box.scrollHeight - box.scrollTop - box.clientHeight < 48;
  }

  private atEnd = true;

  override updated(): void {
    const box = this.querySelector(".log");
    if (box && this.atEnd) box.scrollTop = box.scrollHeight;
  }

  override render(): TemplateResult {
    const found = this.fitting;
    const actions = html`<label class="unseen" for="least">${t("logs.least")}</label><select class="input" id="least" @change=${(event: Event) => { this.least = (event.target as HTMLSelectElement).value; this.change(); }}>
        ${LEVELS.map((each) => html`<option value=${each} ?selected=${each === this.least}>${named(`logs.is.${each}`, each)}</option>`)}</select>
      <label class="unseen" for="seek">${t("logs.search")}</label><input class="input" id="seek" type="search" placeholder=${t("do.search")} @input=${(event: Event) => { this.search = (event.target as HTMLInputElement).value.trim().toLowerCase(); this.change(); }}>
      <button class="btn" aria-pressed=${this.paused ? "true" : "false"} @click=${() => { this.paused = !this.paused; this.change(); void this.more(); }}>${t(this.paused ? "logs.on" : "logs.pause")}</button>
      <button class="btn q copy" @click=${() => void navigator.clipboard.writeText(found.map((each) => each.raw).join("\n")).then(() => toast(t("do.copied")))}>${t("do.copy")}</button>`;
    return html`${this.head(t("page.logs"), nothing, actions)}${this.fault ? html`<div class="page">${failed(this.fault, () => void this.more())}</div>` : nothing}
      ${this.began ? found.length ? html`<div class="log" tabindex="0" role="log" aria-live="off" aria-label=${t("page.logs")}>${found.slice(-SHOWN).map((each) => html`<div class="line ${each.level}"><span class="at">${each.at}</span><span class="lv">${each.level}</span><span class="wh">${each.where}</span><span class="tx">${each.text}</span></div>`)}</div>`
        : html`<div class="page">${empty(t("logs.none"), t("logs.none.words"))}</div>` : html`<div class="page">${this.fault ? nothing : skeleton(8)}</div>`}`;
  }
}

customElements.define("page-logs", Logs);
