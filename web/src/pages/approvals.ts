/** What waits for a yes or a no, what was answered, and what was allowed for longer. */
import { html, nothing, type TemplateResult } from "lit";

import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { ago, when } from "../lib/format";
import { gateway } from "../lib/house";
import type { Dict } from "../lib/wire";
import { named, t } from "../lib/words";
import { tried } from "../ui/act";
import { sure } from "../ui/dialog";
import { empty, table } from "../ui/parts";
import { answer, ask, pending, type Question } from "./chat/ask";

const EVENTS = ["exec.approval.requested", "exec.approval.resolved", "plugin.approval.requested", "plugin.approval.resolved"];
const PAST = 50;

interface Told {
  open: Question[];
  grants: Dict[];
  rules: Dict | null;
  past: Dict[];
}

/** What a gateway answers that knows the method; `otherwise` where it does not. */
async function known<T>(method: string, params: Dict, otherwise: T): Promise<Dict | T> {
  return gateway.knows(method) ? gateway.call(method, params) : otherwise;
}

class Approvals extends Page {
  private told = new Loaded<Told>(this, () => this.read(), { on: EVENTS });

  private async read(): Promise<Told> {
    const [open, grants, rules, past] = await Promise.all([
      pending(), known("exec.approval.grants.list", {}, { grants: [] }),
      known("exec.approvals.get", {}, null), known("approval.history", { limit: PAST }, { items: [] }),
    ]);
    return { open, grants: (grants.grants as Dict[]).filter((each) => !each.revokedAtMs), rules, past: past.items as Dict[] };
  }

  /** `a` allows the first question, once. */
  override key(key: string): boolean {
    const first = this.told.value?.open[0];
    if (key !== "a" || !first) return false;
    void answer(first, "allow-once");
    return true;
  }

  override render(): TemplateResult {
    return html`${this.head(t("page.approvals"), t("approvals.meta"))}<div class="page">${this.told.show((got) => html`
      ${got.open.length ? got.open.map((each) => ask(each, html`<p class="small quiet"><a href=${`chat/${encodeURIComponent(each.sessionKey)}`}>${each.sessionKey}</a> ·
        ${t("approvals.until", { time: when(each.expiresAt) })}</p>`)) : empty(t("approvals.none"), t("approvals.none.words"))}
      <h2 class="sect">${t("approvals.grants")}</h2>${this.grants(got.grants)}
      <h2 class="sect">${t("approvals.rules")}</h2>${this.rules(got.rules)}
      <h2 class="sect">${t("approvals.past")}</h2>${this.past(got.past)}`)}</div>`;
  }

  private grants(rows: Dict[]): TemplateResult {
    if (!rows.length) return html`<p class="quiet">${t("approvals.grants.none")}</p>`;
    return table(t("approvals.grants"), [
      { name: t("approvals.what"), show: (row: Dict) => html`<code>${row.command}</code><div class="small quiet">${row.covers}</div>` },
      { name: t("approvals.whose"), show: (row: Dict) => row.agentId },
      { name: t("approvals.ends"), show: (row: Dict) => (row.expiresAtMs ? when(Number(row.expiresAtMs)) : t("approvals.never")), right: true },
      { name: t("approvals.used"), show: (row: Dict) => (row.lastUsedAtMs ? `${row.useCount} · ${ago(Number(row.lastUsedAtMs))}` : "–"), right: true },
      { name: t("approvals.act"), show: (row: Dict) => html`<button class="btn" aria-label=${t("approvals.revoke.of", { name: row.command })} @click=${() => void this.revoke(row)}>${t("approvals.revoke")}</button>`, right: true },
    ], rows);
  }

  private async revoke(row: Dict): Promise<void> {
    if (!(await sure(t("approvals.revoke.sure"), html`<code>${row.command}</code>`, t("approvals.revoke")))) return;
    await tried("exec.approval.grants.revoke", { grantId: row.grantId }, t("approvals.revoked"));
    void this.told.reload();
  }

  /** What the document says, for an agent that it does not name. */
  private rules(document: Dict | null): unknown {
    const found = document?.resolvedDefaults as Dict | undefined;
    if (!found) return html`<p class="quiet">${t("approvals.rules.none")}</p>`;
    return html`<p>${named(`approvals.security.${found.security}`, String(found.security))} ${named(`approvals.ask.${found.ask}`, String(found.ask))}
      ${found.ask === "off" ? nothing : named(`approvals.fallback.${found.askFallback}`, "")}</p>
      <details><summary class="small quiet">${t("approvals.document")}</summary><garra-code .text=${JSON.stringify(document!.file, null, 2)} .label=${t("approvals.document")}></garra-code></details>`;
  }

  private past(rows: Dict[]): TemplateResult {
    if (!rows.length) return html`<p class="quiet">${t("approvals.past.none")}</p>`;
    return table(t("approvals.past"), [
      { name: t("approvals.what"), show: (row: Dict) => html`<code>${row.presentation.commandText ?? row.presentation.title}</code><div class="small quiet">${row.source?.sessionKey}</div>` },
      { name: t("approvals.answer"), show: (row: Dict) => html`<span class="tag ${row.status === "allowed" ? "ok" : row.status === "denied" ? "bad" : ""}">${named(`approvals.is.${row.status}`, String(row.status))}</span>
        ${row.decision === "allow-always" ? t("approvals.always") : nothing}` },
      { name: t("approvals.by"), show: (row: Dict) => row.resolver?.id ?? "–" },
      { name: t("approvals.at"), show: (row: Dict) => when(Number(row.resolvedAtMs)), right: true },
    ], rows);
  }
}

customElements.define("page-approvals", Approvals);
