/** What is wrong with this installation, where, and how it is mended. */
import { html, nothing, type TemplateResult } from "lit";

import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { gateway } from "../lib/house";
import type { Dict } from "../lib/wire";
import { t } from "../lib/words";
import { tried } from "../ui/act";
import { sheet } from "../ui/dialog";
import { dot } from "../ui/parts";

const DOTS: Record<string, "ok" | "warn" | "bad" | "off"> = { ok: "ok", note: "off", warn: "warn", bad: "bad" };
const ORDER = ["bad", "warn", "note", "ok"];

class Doctor extends Page {
  private told = new Loaded<Dict>(this, () => gateway.call("doctor.examine", {}));

  override render(): TemplateResult {
    const actions = html`<button class="btn" @click=${() => void this.told.reload()}>${t("doctor.again")}</button>`;
    return html`${this.head(t("page.doctor"), t("doctor.meta"), actions)}<div class="page">${this.told.show((got) => this.body(got.findings as Dict[]))}</div>`;
  }

  private body(rows: Dict[]): TemplateResult {
    const sorted = [...rows].sort((one, other) => ORDER.indexOf(one.level) - ORDER.indexOf(other.level));
    const grave = sorted.filter((each) => each.level === "bad" || each.level === "warn");
    return html`<p class="quiet">${grave.length ? t("doctor.some", { n: grave.length }) : t("doctor.well")}</p>
      <ul class="rows">${sorted.map((each) => html`<li class="card ${each.level === "bad" || each.level === "warn" ? each.level : ""}"><div>${dot(DOTS[each.level] ?? "off")} <b>${each.what}</b> <span class="quiet small">${each.check}</span></div>
        ${each.where ? html`<div class="small quiet"><code>${each.where}</code></div>` : nothing}${each.how && each.level !== "ok" ? html`<p class="small">${each.how}</p>` : nothing}
        ${each.fixable ? html`<div class="go"><button class="btn" aria-label=${t("doctor.mend.of", { what: each.what })} @click=${() => void this.mend(each)}>${t("doctor.mend")}</button></div>` : nothing}</li>`)}</ul>`;
  }

  private async mend(each: Dict): Promise<void> {
    const got = await tried("doctor.mend", { check: each.check, what: each.what });
    if (!got) return;
    await sheet(t("doctor.mended"), (close) => html`<ul class="rows">${(got.mended as Dict[]).map((done) => html`<li>${done.said}</li>`)}</ul>
      <div class="go"><button class="btn" @click=${() => close()}>${t("do.close")}</button></div>`);
    void this.told.reload();
  }
}

customElements.define("page-doctor", Doctor);
