/** The rows of the inbox: each message that came in with the answers to it, and each that went out by itself. */
import type { Dict } from "./wire";

export type Standing = "bad" | "unsure" | "now" | "past";

export interface Mail {
  id: string;
  channel: string;
  account: string;
  who: string;
  chat: string;
  thread: string;
  text: string;
  at: number;
  /** When anything of it last changed. */
  moved: number;
  standing: Standing;
  /** Why it stands where it does, in the gateway's words. */
  reason: string;
  /** The message that a person can have tried again or dropped; empty when there is none. */
  mend: string;
  tries: number;
  sessionKey: string;
  runId: string;
  /** From arrival to the first answer that was written, where there is one. */
  took: number | null;
  answers: number;
  /** It went out by itself: a report, a reminder. */
  out: boolean;
  files: number;
}

const BUSY = new Set(["in.pending", "in.claimed", "in.adopted", "out.pending", "out.sending"]);

const of = (row: Dict): string => `${row.direction}.${row.state}`;

function standing(rows: readonly Dict[]): [Standing, Dict | undefined] {
  const dead = rows.find((row) => row.state === "dead");
  if (dead) return ["bad", dead];
  const unsure = rows.find((row) => row.state === "unsure");
  if (unsure) return ["unsure", unsure];
  return [rows.some((row) => BUSY.has(of(row))) ? "now" : "past", undefined];
}

function mailOf(head: Dict, answers: readonly Dict[]): Mail {
  const rows = [head, ...answers];
  const [state, found] = standing(rows);
  const waiting = rows.find((row) => row.reason && state === "now");
  const written = answers.length ? Math.min(...answers.map((row) => Number(row.at))) - Number(head.at) : null;
  const sender = (head.sender ?? {}) as Dict;
  return {
    id: String(head.id), channel: String(head.channel ?? ""), account: String(head.accountId ?? ""),
    who: String(sender.name || sender.id || head.chat || ""), chat: String(head.chat ?? ""), thread: String(head.thread ?? ""),
    text: String(head.text || head.event || ""), at: Number(head.at), moved: Math.max(...rows.map((row) => Number(row.updatedAt ?? row.at))),
    standing: state, reason: String(found?.reason ?? waiting?.reason ?? head.reason ?? ""), mend: found ? String(found.id) : "",
    tries: Number(found?.tries ?? 0), sessionKey: String(head.sessionKey ?? ""), runId: String(head.runId ?? answers[0]?.runId ?? ""),
    took: written, answers: answers.length, out: head.direction === "out",
    files: ((head.media ?? head.files ?? []) as unknown[]).length,
  };
}

/** Rows of `messages.list`, newest first, as mails, newest first. */
export function mails(rows: readonly Dict[]): Mail[] {
  const incoming = new Set(rows.filter((row) => row.direction === "in").map((row) => String(row.id)));
  const answers = new Map<string, Dict[]>();
  for (const row of rows) {
    const to = String(row.inboxId ?? "");
    if (row.direction === "out" && incoming.has(to)) answers.set(to, [...(answers.get(to) ?? []), row]);
  }
  return rows
    .filter((row) => row.direction === "in" || !incoming.has(String(row.inboxId ?? "")))
    .map((row) => mailOf(row, answers.get(String(row.id)) ?? []));
}

/** Whether all words of `query` stand in a mail. */
export function holds(mail: Mail, query: string): boolean {
  const text = `${mail.who} ${mail.chat} ${mail.channel} ${mail.text} ${mail.reason}`.toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

export function median(values: readonly number[]): number | null {
  if (!values.length) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
