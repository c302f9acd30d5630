/** The small parts of every page, as functions: states, fields, rows. Parts with a life of their own are elements. */
import { html, nothing, type TemplateResult } from "lit";
import type { Refused } from "../lib/wire";
import { t } from "../lib/words";

/** What stands where something will: seen after 300 ms only. */
export function skeleton(rows = 4): TemplateResult {
  return html`<div class="skel" role="status" aria-label=${t("state.loading")}>${Array.from({ length: rows }, () => html`<i></i>`)}</div>`;
}

/** Nothing there yet: `words` say what to do first. */
export function empty(title: string, words: unknown, action: unknown = nothing): TemplateResult {
  return html`<div class="empty"><h2>${title}</h2><p>${words}</p>${action}</div>`;
}

/** Cause and remedy. `kind` `bad` or `warn` where a person has to look. */
export function notice(title: string, words: unknown, more: { kind?: "bad" | "warn"; action?: unknown } = {}): TemplateResult {
  return html`<div class="notice ${more.kind ?? ""}" role=${more.kind === "bad" ? "alert" : "note"}>
    <h2>${title}</h2><div>${words}</div>${more.action ? html`<div class="go">${more.action}</div>` : nothing}
  </div>`;
}

/** A request that failed, with the gateway's own words, and a way to try again. */
export function failed(fault: Refused, again?: () => void): TemplateResult {
  const words = fault.code === "OFFLINE" || fault.code === "TIMEOUT" ? t("state.unreached") : fault.message;
  return notice(t("state.failed"), words, {
    kind: "bad",
    action: again ? html`<button class="btn" @click=${again}>${t("do.again")}</button>` : nothing,
  });
}

/** A label, what is asked, and what helps or is wrong. `control` has the id `id`. */
export function field(id: string, label: string, control: TemplateResult, more: { help?: string; wrong?: string } = {}): TemplateResult {
  return html`<div class="field"><label for=${id}>${label}</label>${control}
    ${more.help ? html`<small id="${id}-help">${more.help}</small>` : nothing}
    ${more.wrong ? html`<span class="wrong" role="alert">${more.wrong}</span>` : nothing}</div>`;
}

export interface Column<T> {
  name: string;
  show: (row: T) => unknown;
  /** Figures: to the right, under each other. */
  right?: boolean;
}

/** Rows of facts. `label` names the table to those who hear it. */
export function table<T>(label: string, columns: readonly Column<T>[], rows: readonly T[]): TemplateResult {
  return html`<div class="wide" tabindex="0" role="region" aria-label=${label}><table class="table">
    <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.right ? "r" : ""}>${column.name}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${columns.map((column) => html`<td class=${column.right ? "r" : ""}>${column.show(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

export function dot(state: "ok" | "warn" | "bad" | "off"): TemplateResult {
  return html`<span class="dot ${state}" aria-hidden="true"></span>`;
}
