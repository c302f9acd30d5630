/**
 * A conversation as it is shown. The transcript is the authority: its rows come from `chat.history` and are merged by
 * their ids. A run that goes on is a projection of live events beside them, and goes when its rows are there.
 */
import type { Dict } from "./wire";

export interface Call {
  id: string;
  name: string;
  /** What it is about, one line. */
  about: string;
  args: string;
  output: string;
  state: "running" | "done" | "failed";
  startedAt: number;
  endedAt: number;
}

export type Block =
  | { kind: "text"; id: string; text: string }
  | { kind: "thinking"; id: string; text: string }
  | { kind: "call"; id: string; call: Call };

export interface Spent {
  model: string;
  ms: number;
  tokens: number;
  cached: number;
  cost: number;
}

export interface Item {
  kind: "user" | "answer" | "note";
  id: string;
  at: number;
  runId: string;
  text: string;
  blocks: Block[];
  images: string[];
  /** Shown in part: the whole is to be had by `id`. */
  cut: boolean;
  fault: string;
  spent: Spent | null;
}

export interface Live {
  runId: string;
  startedAt: number;
  blocks: Block[];
  phase: string;
  model: string;
  /** Words of a run that was met midway, before its first event. */
  met: string;
  ended: boolean;
  fault: string;
}

const HINTS = ["command", "path", "file_path", "query", "url", "pattern", "action", "text"];

/** One line on what a call is about. */
export function about(args: unknown): string {
  const given = (typeof args === "object" && args !== null ? args : {}) as Dict;
  for (const name of HINTS) {
    const value = given[name];
    if (typeof value === "string" && value) return value.split("\n", 1)[0]!.slice(0, 200);
  }
  const text = JSON.stringify(given);
  return text === "{}" ? "" : text.slice(0, 200);
}

function words(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.filter((part) => part?.type === "text").map((part) => String(part.text ?? "")).join("\n\n");
}

/** What a person wrote, without the marks by which a model knows words from outside. */
export function bare(text: string): string {
  return text.replace(/<<<EXTERNAL_UNTRUSTED_CONTENT id="([0-9a-f]{16})">>>\nSource: [^\n]*\n---\n(.*?)\n<<<END_EXTERNAL_UNTRUSTED_CONTENT id="\1">>>/gs, "$2");
}

function pictures(content: unknown): string[] {
  if (!Array.isArray(content)) return [];
  return content
    .filter((part) => part?.type === "image" && typeof part.data === "string" && /^image\/(png|jpeg|gif|webp)$/.test(part.mimeType ?? ""))
    .map((part) => `data:${part.mimeType};base64,${part.data}`);
}

export function argsText(args: unknown): string {
  const given = (typeof args === "object" && args !== null ? args : {}) as Dict;
  return Object.entries(given).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value, null, 1)}`).join("\n");
}

function blocksOf(row: Dict, id: string, at: number): Block[] {
  const content = row.content;
  if (typeof content === "string") return content ? [{ kind: "text", id: `${id}:0`, text: content }] : [];
  if (!Array.isArray(content)) return [];
  return content.flatMap((part: Dict, place: number): Block[] => {
    const own = `${id}:${place}`;
    if (part?.type === "text" && part.text) return [{ kind: "text", id: own, text: String(part.text) }];
    if (part?.type === "thinking" && part.thinking) return [{ kind: "thinking", id: own, text: String(part.thinking) }];
    if (part?.type === "toolCall") {
      const call: Call = {
        id: String(part.id), name: String(part.name), about: about(part.arguments), args: argsText(part.arguments),
        output: "", state: "running", startedAt: at, endedAt: 0,
      };
      return [{ kind: "call", id: own, call }];
    }
    return [];
  });
}

function spentOf(row: Dict): Spent | null {
  const usage = row.usage as Dict | undefined;
  if (!usage || row.provider === "gateway") return null;
  return {
    model: String(row.model ?? ""), ms: 0, tokens: Number(usage.totalTokens ?? 0),
    cached: Number(usage.cacheRead ?? 0), cost: Number(usage.cost?.total ?? 0),
  };
}

function added(before: Spent | null, more: Spent | null): Spent | null {
  if (!before || !more) return more ?? before;
  return {
    model: more.model, ms: more.ms, tokens: before.tokens + more.tokens, cached: before.cached + more.cached,
    cost: before.cost + more.cost,
  };
}

export function stampOf(row: Dict): number {
  return Number(row.__openclaw?.recordTimestampMs ?? row.timestamp ?? 0);
}

/** Rows of a transcript, oldest first, as items: the messages of one turn are one answer, results stand in their calls. */
export function items(rows: readonly Dict[]): Item[] {
  const found: Item[] = [];
  const calls = new Map<string, Call>();
  for (const row of rows) {
    const mark = (row.__openclaw ?? {}) as Dict;
    const id = String(mark.id ?? "");
    const at = stampOf(row);
    if (row.role === "user") {
      found.push({
        kind: "user", id, at, runId: String(mark.idempotencyKey ?? "").replace(/:user$/, ""), text: bare(words(row.content)),
        blocks: [], images: pictures(row.content), cut: mark.truncated === true, fault: "", spent: null,
      });
    } else if (row.role === "toolResult") {
      answered(calls.get(String(row.toolCallId)), row, at);
    } else if (row.role === "assistant") {
      const before = found.at(-1);
      const blocks = blocksOf(row, id, at);
      for (const block of blocks) if (block.kind === "call") calls.set(block.call.id, block.call);
      if (before?.kind === "answer" && !before.cut && mark.truncated !== true && goesOn(before, String(mark.runId ?? ""))) {
        before.blocks.push(...blocks);
        before.spent = timed(added(before.spent, spentOf(row)), found, at);
        before.fault = faultOf(row);
        before.id = id;
      } else {
        found.push({
          kind: "answer", id, at, runId: String(mark.runId ?? ""), text: "", blocks, images: [],
          cut: mark.truncated === true, fault: faultOf(row), spent: timed(spentOf(row), found, at),
        });
      }
    } else {
      const text = words(row.content) || String(row.summary ?? "");
      if (text) found.push({ kind: "note", id, at, runId: "", text, blocks: [], images: [], cut: false, fault: "", spent: null });
    }
  }
  return found;
}

/** Whether a message of run `runId` is more of an answer; one without a run is, after a call. */
function goesOn(before: Item, runId: string): boolean {
  return before.runId === runId && (runId !== "" || before.blocks.at(-1)?.kind === "call");
}

function faultOf(row: Dict): string {
  if (row.stopReason === "error") return String(row.errorMessage ?? "") || "error";
  return row.stopReason === "aborted" ? "aborted" : "";
}

function timed(spent: Spent | null, found: readonly Item[], at: number): Spent | null {
  const asked = found.findLast((item) => item.kind === "user");
  return spent && asked ? { ...spent, ms: Math.max(0, at - asked.at) } : spent;
}

function answered(call: Call | undefined, row: Dict, at: number): void {
  if (!call) return;
  call.output = words(row.content);
  call.state = row.isError ? "failed" : "done";
  const ms = Number(row.details?.durationMs);
  call.endedAt = at;
  if (Number.isFinite(ms) && ms > 0) call.startedAt = at - ms;
}

export class ChatLog {
  rows: Dict[] = [];
  live: Live | null = null;
  cursor = "";
  total = 0;
  /** How many older messages the transcript has before `rows[0]`. */
  before = 0;
  private drawn: Item[] | null = null;
  private ids = new Set<string>();

  get items(): Item[] {
    return (this.drawn ??= items(this.rows));
  }

  /** A whole page of history: what was there before is forgotten. */
  load(answer: Dict): void {
    this.rows = [...(answer.messages as Dict[])];
    this.ids = new Set(this.rows.map((row) => String(row.__openclaw?.id)));
    this.cursor = String(answer.deltaCursor ?? "");
    this.total = Number(answer.totalMessages ?? this.rows.length);
    this.before = answer.hasMore ? this.total - this.rows.length : 0;
    this.drawn = null;
    const flying = answer.inFlightRun as Dict | undefined;
    this.live = flying ? { ...begun(String(flying.runId), Number(flying.startedAt)), met: this.unstored(String(flying.runId), String(flying.text ?? "")) } : null;
  }

  /** Older messages, to stand before what is there. */
  older(answer: Dict): void {
    const fresh = (answer.messages as Dict[]).filter((row) => !this.ids.has(String(row.__openclaw?.id)));
    for (const row of fresh) this.ids.add(String(row.__openclaw?.id));
    this.rows = [...fresh, ...this.rows];
    this.before = answer.hasMore && fresh.length ? Math.max(0, Number(answer.totalMessages ?? 0) - Number(answer.nextOffset ?? 0)) : 0;
    this.drawn = null;
  }

  /** What came since the cursor; the run whose rows these are is no longer live. */
  since(answer: Dict): void {
    if (answer.kind !== "delta") {
      this.load(answer);
      return;
    }
    for (const news of answer.messages as Dict[]) this.put(news.message as Dict);
    this.cursor = String(answer.deltaCursor ?? this.cursor);
    const flying = answer.inFlightRun as Dict | undefined;
    if (!flying || flying.runId !== this.live?.runId) this.live = this.live?.fault && !this.stored(this.live.runId) ? this.live : null;
    if (flying && !this.live) this.live = { ...begun(String(flying.runId), Number(flying.startedAt)), met: this.unstored(String(flying.runId), String(flying.text ?? "")) };
  }

  /** One stored message; a message that is there already is replaced. */
  put(row: Dict): void {
    const id = String(row.__openclaw?.id);
    if (this.ids.has(id)) this.rows = this.rows.map((each) => (String(each.__openclaw?.id) === id ? row : each));
    else {
      this.rows = [...this.rows, row];
      this.ids.add(id);
      this.total += 1;
    }
    this.drawn = null;
  }

  private stored(runId: string): boolean {
    return this.rows.some((row) => row.role === "assistant" && row.__openclaw?.runId === runId);
  }

  /** Of the words of a run that goes on, those that no stored row has: the stored ones stand before them. */
  private unstored(runId: string, text: string): string {
    let rest = text;
    for (const row of this.rows) {
      if (row.role !== "assistant" || row.__openclaw?.runId !== runId) continue;
      const said = words(row.content);
      if (said && rest.startsWith(said)) rest = rest.slice(said.length).replace(/^\n+/, "");
    }
    return rest;
  }

  /** A live event of this session. True when the run ended: its rows are to be read. */
  hear(event: string, payload: Dict): boolean {
    if (event === "chat") return this.chat(payload);
    if (event === "session.message") {
      const row = payload.message as Dict;
      if (row?.role === "user") this.put(row);
      return false;
    }
    if (payload.stream === "tool") this.tool(this.run(payload), payload.data as Dict, Number(payload.ts ?? 0));
    else if (payload.stream === "assistant" || payload.stream === "thinking") this.grow(payload);
    else if (payload.stream === "lifecycle") this.phase(payload);
    return false;
  }

  private chat(payload: Dict): boolean {
    if (payload.state === "status") {
      this.run(payload).phase = String(payload.phase ?? "");
      return false;
    }
    if (payload.state === "delta") {
      this.run(payload);
      return false;
    }
    const live = this.live?.runId === payload.runId ? this.live : null;
    if (live) {
      live.ended = true;
      if (payload.state === "error") live.fault = String(payload.errorMessage ?? "error");
      if (payload.state === "aborted") live.fault = "aborted";
    } else if (payload.state === "error") {
      this.live = { ...begun(String(payload.runId), Date.now()), ended: true, fault: String(payload.errorMessage ?? "error") };
    } else if (payload.state === "final" && payload.message && !this.live) {
      // Words that no run said, of a command for one: stored nowhere, so they are shown from the event.
      this.live = { ...begun(String(payload.runId), Date.now()), ended: true, met: words(payload.message.content) };
    }
    return true;
  }

  private run(payload: Dict): Live {
    const runId = String(payload.runId);
    if (this.live?.runId !== runId) this.live = begun(runId, Number(payload.ts ?? Date.now()));
    return this.live!;
  }

  private grow(payload: Dict): void {
    const live = this.run(payload);
    const data = payload.data as Dict;
    const kind = payload.stream === "thinking" ? "thinking" : "text";
    const id = `${kind}:${data.itemId ?? ""}`;
    live.met = "";
    const block = live.blocks.find((each) => each.id === id);
    if (block && block.kind !== "call") block.text = String(data.text ?? "");
    else live.blocks.push({ kind, id, text: String(data.text ?? "") });
  }

  private phase(payload: Dict): void {
    const data = payload.data as Dict;
    if (data.phase === "start") this.run(payload).startedAt = Number(data.startedAt ?? Date.now());
    else if (data.phase === "model" && data.model && this.live?.runId === payload.runId) this.live!.model = String(data.model);
    if (this.live?.runId === payload.runId) this.live!.phase = String(data.phase ?? "");
  }

  private tool(live: Live, data: Dict, ts: number): void {
    const id = String(data.toolCallId);
    let call = live.blocks.find((block): block is Block & { kind: "call" } => block.kind === "call" && block.call.id === id)?.call;
    if (!call) {
      call = {
        id, name: String(data.name), about: about(data.args), args: argsText(data.args), output: "", state: "running",
        startedAt: ts, endedAt: 0,
      };
      // A call that was stored before this page met the run stands in its row.
      const kept = this.items.flatMap((item) => item.blocks).find((block) => block.kind === "call" && block.call.id === id);
      if (kept?.kind === "call") call = kept.call;
      else live.blocks.push({ kind: "call", id: `call:${id}`, call });
    }
    if (data.phase === "update") call.output = words(data.partialResult?.content);
    if (data.phase === "result") {
      call.output = words(data.result?.content);
      call.state = data.isError ? "failed" : "done";
      call.endedAt = ts;
    }
  }
}

function begun(runId: string, startedAt: number): Live {
  return { runId, startedAt, blocks: [], phase: "", model: "", met: "", ended: false, fault: "" };
}
