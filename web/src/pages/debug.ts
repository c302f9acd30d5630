/** The protocol by hand: ask any method, see the events as they come, and what the gateway said at the greeting. */
import { html, nothing, type TemplateResult } from "lit";

import "./debug.css";
import { Page } from "../app/page";
import { clock } from "../lib/format";
import { gateway } from "../lib/house";
import { Refused, type Dict } from "../lib/wire";
import { t } from "../lib/words";
import { empty } from "../ui/parts";
import "../ui/code";

const KEPT = 200;
const LONG = 20_000; // characters of an answer that are shown

interface Heard {
  at: number;
  event: string;
  payload: unknown;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value, null, 2) ?? "";
  return text.length > LONG ? `${text.slice(0, LONG)}\n… ${t("debug.cut", { n: text.length - LONG })}` : text;
}

class Debug extends Page {
  private said: { text: string; ms: number; ok: boolean } | null = null;
  private wrong = "";
  private heard: Heard[] = [];
  private listening = false;

  private listen(): void {
    this.listening = !this.listening;
    this.change();
  }

  protected override begin(): void {
    for (const event of gateway.hello?.features.events ?? []) {
      this.hear(event, (payload: unknown) => {
        if (!this.listening) return;
        this.heard = [{ at: Date.now(), event, payload }, ...this.heard].slice(0, KEPT);
        this.change();
      });
    }
    this.until(gateway.watch(() => this.change()));
  }

  override render(): TemplateResult {
    const methods = gateway.hello?.features.methods ?? [];
    return html`${this.head(t("page.debug"), t("debug.meta"))}<div class="page">
      <h2 class="sect">${t("debug.ask")}</h2>
      <form class="card" @submit=${(event: Event) => void this.ask(event)}>
        <div class="field"><label for="method">${t("debug.method")}</label><input id="method" name="method" list="methods" autocomplete="off" spellcheck="false" required value="health"></div>
        <datalist id="methods">${methods.map((each) => html`<option value=${each}></option>`)}</datalist>
        <div class="field"><label for="params">${t("debug.params")}</label><textarea id="params" name="params" spellcheck="false" rows="4">{}</textarea>${this.wrong ? html`<span class="wrong" role="alert">${this.wrong}</span>` : nothing}</div>
        <div class="go"><button class="btn p">${t("debug.go")}</button></div></form>
      ${this.said ? html`<p class="small num" role="status">${t(this.said.ok ? "debug.answered" : "debug.refused", { ms: this.said.ms })}</p><garra-code .text=${this.said.text} .label=${t("debug.answer")}></garra-code>` : nothing}
      <h2 class="sect">${t("debug.events")}</h2>
      <div class="go first"><button class="btn" aria-pressed=${this.listening ? "true" : "false"} @click=${() => this.listen()}>${t(this.listening ? "debug.deaf" : "debug.listen")}</button></div>
      ${this.heard.length ? html`<ul class="rows heard">${this.heard.map((each) => html`<li><details><summary><span class="num quiet">${clock(each.at)}</span> <b>${each.event}</b></summary><garra-code .text=${shown(each.payload)} .label=${each.event}></garra-code></details></li>`)}</ul>`
        : this.listening ? empty(t("debug.silent"), t("debug.silent.words")) : nothing}
      <h2 class="sect">${t("debug.hello")}</h2><details><summary class="small quiet">${t("debug.hello.words", { version: gateway.hello?.server.version ?? "–", n: methods.length })}</summary>
        <garra-code .text=${shown({ ...gateway.hello, auth: { ...(gateway.hello?.auth ?? {}), deviceToken: undefined } })} .label=${t("debug.hello")}></garra-code></details></div>`;
  }

  private async ask(event: Event): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    this.wrong = "";
    let params: Dict;
    try {
      params = JSON.parse(String(form.get("params") || "{}")) as Dict;
    } catch (fault) {
      this.wrong = t("debug.json", { why: (fault as Error).message });
      this.change();
      return;
    }
    const began = performance.now();
    try {
      const got = await gateway.call(String(form.get("method")).trim(), params);
      this.said = { text: shown(got), ms: Math.round(performance.now() - began), ok: true };
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      this.said = { text: shown({ code: fault.code, message: fault.message, details: fault.details }), ms: Math.round(performance.now() - began), ok: false };
    }
    this.change();
  }
}

customElements.define("page-debug", Debug);
