/** Which tools a conversation has, and which step of the policy took the others. */
import { html, nothing, type TemplateResult } from "lit";

import "./tools.css";
import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { gateway } from "../lib/house";
import type { Dict } from "../lib/wire";
import { named, t } from "../lib/words";
import { tried } from "../ui/act";
import { sheet } from "../ui/dialog";
import { empty, notice, table } from "../ui/parts";

const SESSIONS = 200;
const LOOKS: Record<string, string> = { allow: "ok", ask: "warn", deny: "bad" };

interface Told {
  policy: Dict;
  sessions: Dict[];
}

class Tools extends Page {
  private session = "";
  private search = "";
  private told = new Loaded<Told>(this, () => this.read());

  private async read(): Promise<Told> {
    const [policy, sessions] = await Promise.all([
      gateway.call("tools.policy", this.session ? { sessionKey: this.session } : {}), gateway.call("sessions.list", { limit: SESSIONS }),
    ]);
    return { policy, sessions: sessions.sessions as Dict[] };
  }

  override render(): TemplateResult {
    const actions = html`<label class="unseen" for="seek">${t("tools.search")}</label>
      <input class="input" id="seek" type="search" placeholder=${t("do.search")} @input=${(event: Event) => { this.search = (event.target as HTMLInputElement).value.trim().toLowerCase(); this.change(); }}>`;
    return html`${this.head(t("page.tools"), t("tools.meta"), actions)}<div class="page">${this.told.show((got) => this.body(got))}</div>`;
  }

  private body(got: Told): TemplateResult {
    const rows = (got.policy.tools as Dict[]).filter((each) => `${each.name} ${each.description ?? ""}`.toLowerCase().includes(this.search));
    const keys = [...new Set([String(got.policy.sessionKey), ...got.sessions.map((each) => String(each.key))])];
    const has = rows.filter((each) => each.verdict !== "deny");
    const lacks = rows.filter((each) => each.verdict === "deny");
    return html`<div class="field"><label for="whose">${t("tools.whose")}</label><select id="whose" @change=${(event: Event) => { this.session = (event.target as HTMLSelectElement).value; void this.told.reload(); }}>
        ${keys.map((key) => html`<option value=${key} ?selected=${key === got.policy.sessionKey}>${key}</option>`)}</select></div>
      ${(got.policy.warnings as string[] | undefined)?.map((each) => notice(t("tools.strange"), each, { kind: "warn" }))}
      <h2 class="sect">${t("tools.has", { n: has.length })}</h2>${has.length ? this.list(t("tools.has", { n: has.length }), has) : empty(t("find.none"), t("find.none.words"))}
      ${lacks.length ? html`<h2 class="sect">${t("tools.lacks", { n: lacks.length })}</h2>${this.list(t("tools.lacks", { n: lacks.length }), lacks)}` : nothing}`;
  }

  private list(label: string, rows: Dict[]): TemplateResult {
    return table(label, [
      { name: t("tools.name"), show: (row: Dict) => html`<b>${row.name}</b><div class="small quiet words">${row.description}</div>` },
      { name: t("tools.may"), show: (row: Dict) => html`<span class="tag ${LOOKS[row.verdict] ?? ""}">${named(`tools.is.${row.verdict}`, String(row.verdict))}</span>
        <div class="small quiet">${row.decidedBy ?? (row.offered === "byName" ? t("tools.byname") : nothing)}</div>` },
      { name: t("tools.why"), show: (row: Dict) => html`<button class="btn" aria-label=${t("tools.why.of", { name: row.name })} @click=${() => void this.explain(String(row.name))}>${t("tools.why")}</button>`, right: true },
    ], rows);
  }

  private async explain(name: string): Promise<void> {
    const got = await tried("tools.explain", { name, sessionKey: this.told.value!.policy.sessionKey });
    if (!got) return;
    const said = (got.layers as Dict[]).filter((each) => each.source || each.item);
    await sheet(t("tools.why.of", { name }), (close) => html`<p>${got.words}</p>
      ${got.decidedBy ? html`<p class="small">${t("tools.decided", { step: got.decidedBy.step, source: got.decidedBy.source ?? "" })}</p>` : nothing}
      <ol class="steps small">${said.map((each) => html`<li><b>${each.step}</b> ${each.says}${each.source ? html` <code>${each.source}</code>` : nothing}${each.item ? html` <code>${each.item}</code>` : nothing}</li>`)}</ol>
      <div class="go"><button class="btn" @click=${() => close()}>${t("do.close")}</button></div>`);
  }
}

customElements.define("page-tools", Tools);
