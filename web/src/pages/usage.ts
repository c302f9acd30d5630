/** What was spent: by day as bars, by model, conversation and sender as rows, and the caps that hold. */
import { html, nothing, svg, type TemplateResult } from "lit";

import "./usage.css";
import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { to } from "../app/router";
import { count, money } from "../lib/format";
import { gateway } from "../lib/house";
import type { Dict } from "../lib/wire";
import { t, type Word } from "../lib/words";
import { empty, table } from "../ui/parts";

const BY = ["model", "session", "sender", "agent", "job"] as const;
const CAPS = ["run", "session", "sender", "agent", "job", "day", "month"] as const;
const MOST = 50; // rows of one table
const [WIDE, HIGH] = [720, 180];

interface Spent {
  days: Dict[];
  totals: Dict;
  rows: Dict[];
  caps: Dict;
}

class Usage extends Page {
  private days = 30;
  private by: (typeof BY)[number] = "model";
  private spent = new Loaded<Spent>(this, () => this.read());

  private async read(): Promise<Spent> {
    const [day, by, config] = await Promise.all([
      gateway.call("usage.report", { by: "day", days: this.days }),
      gateway.call("usage.report", { by: this.by, days: this.days }),
      gateway.call("config.get", {}).catch(() => ({}) as Dict),
    ]);
    return { days: whole(day.rows as Dict[], day.startDate, day.endDate), totals: day.totals, rows: by.rows as Dict[], caps: config.config?.budget ?? {} };
  }

  override render(): TemplateResult {
    const actions = html`<label class="unseen" for="span">${t("usage.span")}</label>
      <select class="input" id="span" @change=${(event: Event) => { this.days = Number((event.target as HTMLSelectElement).value); void this.spent.reload(); }}>
        ${[7, 30, 90].map((n) => html`<option value=${n} ?selected=${n === this.days}>${t("usage.days", { n })}</option>`)}</select>`;
    return html`${this.head(t("page.usage"), t("usage.meta"), actions)}<div class="page">${this.spent.show((got) => this.all(got))}</div>`;
  }

  private all(got: Spent): TemplateResult {
    if (!Number(got.totals.calls)) return empty(t("usage.none"), t("usage.none.words"), html`<a class="btn p" href=${to("/chat")}>${t("inbox.begin")}</a>`);
    const { totals } = got;
    const facts: Array<[string, string]> = [
      [money(Number(totals.totalCost)), t("usage.spent")], [count(totals.totalTokens), t("usage.tokens")],
      [count(totals.cacheRead), t("usage.cached")], [count(totals.calls), t("usage.calls")],
    ];
    const dear = Number(totals.totalCost) > 0;
    return html`<div class="stats">${facts.map(([value, name]) => html`<div class="stat"><b>${value}</b><span>${name}</span></div>`)}</div>
      ${totals.missingCostEntries ? html`<p class="small quiet">${t("usage.unpriced", { n: count(totals.missingCostEntries) })}</p>` : nothing}
      <h2 class="sect">${dear ? t("usage.by.day") : t("usage.by.day.tokens")}</h2>${plot(got.days, dear)}
      <h2 class="sect" id="by">${t("usage.by")}</h2>
      <div class="go choose" role="group" aria-labelledby="by">${BY.map((name) => html`<button class="btn ${name === this.by ? "p" : ""}" aria-pressed=${name === this.by ? "true" : "false"}
        @click=${() => { this.by = name; void this.spent.reload(); }}>${t(`usage.by.${name}` as Word)}</button>`)}</div>
      ${got.rows.length ? table(t("usage.by"), [
        { name: t(`usage.by.${this.by}` as Word), show: (row: Dict) => row.name || t("usage.nobody") },
        { name: t("usage.calls"), show: (row: Dict) => count(row.calls), right: true },
        { name: t("usage.tokens"), show: (row: Dict) => count(row.totalTokens), right: true },
        { name: t("usage.spent"), show: (row: Dict) => money(Number(row.totalCost)), right: true },
      ], got.rows.slice(0, MOST)) : html`<p class="quiet">${t("usage.by.none")}</p>`}
      <h2 class="sect">${t("usage.caps")}</h2>${this.caps(got.caps)}`;
  }

  private caps(caps: Dict): unknown {
    const set = CAPS.filter((name) => caps[name]?.maxCostUsd || caps[name]?.maxTokens);
    if (!set.length) return html`<p class="quiet">${t("usage.caps.none")}</p>`;
    return table(t("usage.caps"), [
      { name: t("usage.cap"), show: (name: (typeof CAPS)[number]) => t(`usage.cap.${name}` as Word) },
      { name: t("usage.tokens"), show: (name: (typeof CAPS)[number]) => (caps[name].maxTokens ? count(caps[name].maxTokens) : "–"), right: true },
      { name: t("usage.spent"), show: (name: (typeof CAPS)[number]) => (caps[name].maxCostUsd ? money(caps[name].maxCostUsd) : "–"), right: true },
    ], set);
  }
}

/** Each day of the span, also those without a row. */
function whole(rows: Dict[], first: string, last: string): Dict[] {
  const known = new Map(rows.map((row) => [row.name, row]));
  const days: Dict[] = [];
  for (let at = Date.parse(`${first}T00:00Z`); at <= Date.parse(`${last}T00:00Z`); at += 86_400_000) {
    const name = new Date(at).toISOString().slice(0, 10);
    days.push(known.get(name) ?? { name, totalCost: 0, totalTokens: 0 });
  }
  return days;
}

function plot(days: Dict[], dear: boolean): TemplateResult {
  const worth = (row: Dict) => Number(dear ? row.totalCost : row.totalTokens);
  const said = (n: number) => (dear ? money(n) : count(Math.round(n)));
  const top = Math.max(...days.map(worth), dear ? 0.00001 : 1);
  const step = WIDE / days.length;
  const bars = days.map((row, at) => {
    const tall = worth(row) ? Math.max(2, (worth(row) / top) * HIGH) : 0;
    return svg`<rect x=${at * step + step * 0.12} y=${HIGH - tall} width=${step * 0.76} height=${tall} rx="2"><title>${row.name}: ${said(worth(row))}</title></rect>`;
  });
  const most = days.reduce((best, row) => (worth(row) > worth(best) ? row : best));
  return html`<figure class="card plot"><svg viewBox="0 0 ${WIDE} ${HIGH + 2}" preserveAspectRatio="none" role="img" aria-label=${t("usage.plot", { day: String(most.name), most: said(top) })}>
    ${[0, 0.5, 1].map((part) => svg`<line x1="0" x2=${WIDE} y1=${HIGH * part + 1} y2=${HIGH * part + 1}></line>`)}${bars}</svg>
    <figcaption class="num"><span>${days[0]?.name}</span><span>${t("usage.top", { most: said(top) })}</span><span>${days.at(-1)?.name}</span></figcaption></figure>`;
}

customElements.define("page-usage", Usage);
