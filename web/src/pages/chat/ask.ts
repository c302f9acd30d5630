/** A question of the agent that waits for a person: why, what exactly, and the answers there are. */
import { html, nothing, type TemplateResult } from "lit";
import { gateway } from "../../lib/house";
import { Refused, type Dict } from "../../lib/wire";
import { t, type Word } from "../../lib/words";
import { toast } from "../../ui/say";
import "../../ui/code";
import "./ask.css";

export interface Question {
  id: string;
  kind: "exec" | "plugin";
  sessionKey: string;
  command: string;
  title: string;
  why: string[];
  where: string;
  choices: string[];
  remembers: string;
  expiresAt: number;
}

export function question(row: Dict): Question {
  const asked = (row.request ?? {}) as Dict;
  const kind = row.approvalKind === "plugin" || asked.command === undefined ? "plugin" : "exec";
  const remembers = String(asked.remembers ?? "");
  const warning = String(asked.warningText ?? "").split("\n").filter((line) => line && !line.startsWith("Allow always:"));
  return {
    id: String(row.id), kind, sessionKey: String(asked.sessionKey ?? ""),
    command: String(kind === "exec" ? asked.command : (asked.detail ?? asked.description ?? "")),
    title: kind === "exec" ? t("ask.command") : String(asked.title ?? t("ask.other")),
    why: kind === "exec" ? warning : [], where: String(asked.cwd ?? ""),
    choices: (asked.allowedDecisions as string[] | undefined) ?? ["allow-once", "deny"], remembers,
    expiresAt: Number(row.expiresAtMs ?? 0),
  };
}

/** All that waits, of every session. */
export async function pending(): Promise<Question[]> {
  const lists = await Promise.all(["exec.approval.list", "plugin.approval.list"].map(async (method) => {
    if (!gateway.knows(method)) return [];
    const rows = await gateway.call<Dict[]>(method);
    return Array.isArray(rows) ? rows : [];
  }));
  return lists.flat().map(question);
}

export async function answer(of: Question, decision: string): Promise<void> {
  try {
    // The whole of it stands on the page; our gateway wants to know that.
    const whole = gateway.knows("messages.list") ? { whole: true } : {};
    await gateway.call(`${of.kind}.approval.resolve`, { id: of.id, decision, ...whole });
  } catch (fault) {
    if (!(fault instanceof Refused)) throw fault;
    toast(fault.message);
  }
}

const NAMES: Record<string, Word> = { "allow-once": "ask.once", "allow-always": "ask.always", deny: "ask.deny" };

function choice(of: Question, decision: string, at: number): TemplateResult {
  const name = decision === "allow-always" && of.remembers ? t("ask.remember", { what: of.remembers }) : t(NAMES[decision] ?? "ask.other");
  const look = decision === "deny" ? "q" : at === 0 ? "p" : "";
  return html`<button class="btn ${look}" @click=${() => void answer(of, decision)}>${name}</button>`;
}

/** The card. `about` says of which conversation, where that is not plain. */
export function ask(of: Question, about: unknown = nothing): TemplateResult {
  return html`<section class="ask" aria-label=${t("ask.label")} data-ask=${of.id}>
    <h2>${of.title}</h2>${about}${of.why.map((line) => html`<p>${line}</p>`)}
    <garra-code .text=${of.command} .label=${t("ask.what")} wrap></garra-code>
    ${of.where ? html`<p class="small">${t("ask.where", { folder: of.where })}</p>` : nothing}
    <div class="go">${of.choices.map((decision, at) => choice(of, decision, at))}</div></section>`;
}
