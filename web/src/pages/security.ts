/** Where this installation stands open, and why that matters: the security audit. */
import { html, nothing, type TemplateResult } from "lit";

import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { when } from "../lib/format";
import { gateway } from "../lib/house";
import type { Dict } from "../lib/wire";
import { named, t } from "../lib/words";
import { tried } from "../ui/act";
import { sheet, sure } from "../ui/dialog";
import { empty } from "../ui/parts";

const LOOKS: Record<string, string> = { critical: "bad", warn: "warn", info: "" };

class Security extends Page {
  private told = new Loaded<Dict>(this, () => gateway.call("security.audit", {}));

  override render(): TemplateResult {
    const actions = html`<button class="btn" @click=${() => void this.told.reload()}>${t("security.again")}</button>`;
    return html`${this.head(t("page.security"), t("security.meta"), actions)}<div class="page">${this.told.show((got) => this.body(got))}</div>`;
  }

  private body(got: Dict): TemplateResult {
    const rows = got.findings as Dict[];
    const counts = got.summary as Record<string, number>;
    const fixable = rows.filter((each) => each.fixable);
    const grave = rows.filter((each) => each.severity !== "info");
    return html`<p class="quiet num">${t("security.counts", { critical: counts.critical ?? 0, warn: counts.warn ?? 0, info: counts.info ?? 0, time: when(Number(got.ts)) })}</p>
      ${fixable.length ? html`<div class="notice warn"><h2>${t("security.fix.title", { n: fixable.length })}</h2><div>${t("security.fix.words")}</div>
        <div class="go"><button class="btn p" @click=${() => void this.mend(fixable)}>${t("security.fix")}</button></div></div>` : nothing}
      ${grave.length ? grave.map((each) => this.finding(each)) : empty(t("security.none"), t("security.none.words"))}
      ${rows.length > grave.length ? html`<h2 class="sect">${t("security.know")}</h2>${rows.filter((each) => each.severity === "info").map((each) => this.finding(each))}` : nothing}
      ${(got.suppressedFindings as Dict[] | undefined)?.length ? html`<h2 class="sect">${t("security.accepted")}</h2>${(got.suppressedFindings as Dict[]).map((each) => this.finding(each))}` : nothing}`;
  }

  private finding(each: Dict): TemplateResult {
    return html`<article class="card ${LOOKS[each.severity] ?? ""}"><span class="tag ${LOOKS[each.severity] ?? ""}">${named(`security.is.${each.severity}`, String(each.severity))}</span> <b>${each.title}</b>
      <p class="small">${each.detail}</p>${each.remediation ? html`<p class="small quiet">${each.remediation}</p>` : nothing}
      <div class="small quiet"><code>${each.checkId}</code></div></article>`;
  }

  private async mend(rows: Dict[]): Promise<void> {
    const words = html`${t("security.fix.sure.words")}<ul>${rows.map((each) => html`<li>${each.title}</li>`)}</ul>`;
    if (!(await sure(t("security.fix.sure"), words, t("security.fix")))) return;
    const got = await tried("security.mend", {});
    if (!got) return;
    const fix = got.fix as Dict;
    await sheet(t("security.fixed"), (close) => html`<ul class="rows">${(fix.changes as Dict[]).map((each) => html`<li>${each.what}<div class="small quiet">${t("security.undo")} <code>${each.undo}</code></div></li>`)}
      ${(fix.errors as string[]).map((each) => html`<li class="tag bad">${each}</li>`)}</ul>
      <div class="go"><button class="btn" @click=${() => close()}>${t("do.close")}</button></div>`);
    void this.told.reload();
  }
}

customElements.define("page-security", Security);
