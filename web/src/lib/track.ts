/** The way of a message, from arrival to the confirmed reply, as pieces whose width is time. */
import type { Dict } from "./wire";

export type Piece = { kind: "wait" | "model" | "tool" | "send" | "bad" | "unsure" | "todo"; ms: number };

export interface Story {
  pieces: Piece[];
  model: number;
  tool: number;
  /** From arrival to the first word written, where there is one. */
  first: number | null;
  total: number;
}

const KINDS: Record<string, Piece["kind"]> = {
  received: "wait", admitted: "wait", routed: "wait", queued: "wait", heard: "tool", adopted: "wait", released: "wait",
  retried: "wait", model: "model", tool: "tool", answered: "send", written: "send", sending: "send", later: "bad",
  degraded: "send", held: "bad",
};

/** What the stations of `messages.get` say; `now` where the message is still on its way. */
export function story(stations: readonly Dict[], running: boolean, now: number): Story {
  const ways: Piece[] = [];
  let first: number | null = null;
  const began = Number(stations[0]?.at ?? now);
  for (const [place, station] of stations.entries()) {
    const name = String(station.station);
    if ((name === "written" || name === "answered") && first === null) first = Number(station.at) - began;
    if (name === "dead" || name === "refused") ways.push({ kind: "bad", ms: 1 });
    if (name === "unsure") ways.push({ kind: "unsure", ms: 1 });
    const kind = KINDS[name];
    const next = stations[place + 1]?.at ?? (running ? now : undefined);
    if (!kind || next === undefined) continue;
    const ms = Math.max(0, Number(next) - Number(station.at));
    const last = ways.at(-1);
    if (last?.kind === kind) last.ms += ms;
    else ways.push({ kind, ms });
  }
  const sum = (kind: Piece["kind"]) => ways.filter((piece) => piece.kind === kind).reduce((all, piece) => all + piece.ms, 0);
  if (running) ways.push({ kind: "todo", ms: 0 });
  const last = Number(stations.at(-1)?.at ?? began);
  return { pieces: ways, model: sum("model"), tool: sum("tool"), first, total: (running ? now : last) - began };
}

/** Widths in parts of a hundred: by the root of the time, so that a short piece is still seen. */
export function widths(pieces: readonly Piece[]): number[] {
  const roots = pieces.map((piece) => (piece.kind === "todo" || piece.kind === "bad" || piece.kind === "unsure" ? 12 : 0) || Math.sqrt(piece.ms) + 4);
  const all = roots.reduce((sum, root) => sum + root, 0) || 1;
  return roots.map((root) => Math.round((root / all) * 1000) / 10);
}
