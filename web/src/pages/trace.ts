/** How single turns went, step by step: where the time was. */
import { html, nothing, type TemplateResult } from "lit";

import "./trace.css";
import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { count, lasted, money, when } from "../lib/format";
import { gateway } from "../lib/house";
import type { Dict } from "../lib/wire";
import { named, t } from "../lib/words";
import { styled } from "../ui/styled";
import { empty, table } from "../ui/parts";

const NEWEST = 100;

/** A time of a step: milliseconds where it is short. */
export function took(ms: number): string {
  return ms < 1000 ? t("trace.ms", { n: Math.round(ms) }) : lasted(ms);
}

class Trace extends Page {
  private told = new Loaded<Dict>(this, () => this.ask(), { on: ["chat"], pauseMs: 1_000 });

  private ask(): Promise<Dict> {
    const id = this.params.id;
    if (!id) return gateway.call("trace.list", { limit: NEWEST });
    return gateway.call("trace.get", this.query.get("of") === "message" ? { messageId: id } : { runId: id });
  }

  override moved(): void {
    this.told.value = undefined;
    void this.told.reload();
    super.moved();
  }

  override render(): TemplateResult {
    const one = Boolean(this.params.id);
    return html`${this.head(t("page.trace"), one ? html`<a href="trace">${t("trace.all")}</a>` : t("trace.meta"))}
      <div class="page">${this.told.show((got) => (one ? this.turn(got) : this.list(got.traces as Dict[])))}</div>`;
  }

  private list(rows: Dict[] | undefined): TemplateResult {
    if (!rows?.length) return empty(t("trace.none"), t("trace.none.words"));
    return table(t("page.trace"), [
      { name: t("trace.when"), show: (row: Dict) => html`<a href=${`trace/${encodeURIComponent(row.runId)}`}>${when(Number(row.startMs))}</a>` },
      { name: t("trace.where"), show: (row: Dict) => html`${row.sessionKey}<div class="small quiet">${(row.models as string[]).join(", ")}</div>` },
      { name: t("trace.end"), show: (row: Dict) => html`<span class="tag ${row.outcome === "ok" ? "ok" : row.outcome === "running" ? "" : "bad"}">${named(`trace.is.${row.outcome}`, String(row.outcome))}</span>` },
      { name: t("trace.tools"), show: (row: Dict) => count(Number(row.toolCalls)), right: true },
      { name: t("trace.took"), show: (row: Dict) => (row.durationMs === null ? "–" : took(Number(row.durationMs))), right: true },
    ], rows);
  }

  private turn(got: Dict): TemplateResult {
    const spans = (got.spans ?? []) as Dict[];
    const from = Math.min(...spans.map((each) => Number(each.startMs)), Number(got.startMs));
    const end = Math.max(...spans.map((each) => Number(each.endMs ?? Date.now())), Number(got.endMs ?? 0));
    const whole = Math.max(1, end - from);
    const facts = [when(Number(got.startMs)), named(`trace.is.${got.outcome}`, String(got.outcome)), took(whole), t("trace.tokens", { n: count(Number(got.tokens)) }), got.costUsd ? money(Number(got.costUsd)) : ""];
    return html`<p><a href=${`chat/${encodeURIComponent(got.sessionKey)}`}>${got.sessionKey}</a></p><p class="quiet num">${facts.filter(Boolean).join(" · ")}</p>
      ${got.failure ? html`<p>${got.failure}</p>` : nothing}
      <ol class="falls">${spans.filter((each) => each.kind !== "turn").map((each) => this.fall(each, from, whole))}</ol>
      <p class="small quiet num scale"><span>0</span><span>${took(whole)}</span></p>`;
  }

  private fall(span: Dict, from: number, whole: number): TemplateResult {
    const left = ((Number(span.startMs) - from) / whole) * 100;
    const ms = Number(span.endMs ?? from + whole) - Number(span.startMs);
    const more = Object.entries(span.attributes as Dict).filter(([, value]) => typeof value !== "object" && value !== "" && value !== 0);
    const name = named(`trace.step.${span.name}`, String(span.name));
    return html`<li><details><summary><span class="name cut">${name}</span><span class="lane" aria-hidden="true"><i class=${span.kind} ${styled({ left: `${left}%`, width: `max(3px, ${(ms / whole) * 100}%)` })}></i></span><span class="num took">${took(ms)}</span></summary>
      <dl class="keys small">${more.map(([key, value]) => html`<dt>${key}</dt><dd>${value}</dd>`)}</dl></details></li>`;
  }
}

customElements.define("page-trace", Trace);
