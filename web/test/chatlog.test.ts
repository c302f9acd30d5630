/** A conversation: the transcript is the authority, live events stand beside it and go when its rows are there. */
import { expect, test } from "vitest";
import { about, ChatLog, items } from "../src/lib/chatlog";
import type { Dict } from "../src/lib/wire";

const user = (id: string, text: string, key = ""): Dict => ({
  role: "user", content: text, __openclaw: { id, recordTimestampMs: 1000, ...(key ? { idempotencyKey: `${key}:user` } : {}) },
});
const said = (id: string, content: Dict[], runId = "r1", more: Dict = {}): Dict => ({
  role: "assistant", content, model: "m", usage: { totalTokens: 10, cacheRead: 4, cost: { total: 0.5 } },
  __openclaw: { id, runId, recordTimestampMs: 3000 }, ...more,
});
const text = (words: string): Dict => ({ type: "text", text: words });

test("the messages of one turn are one answer, and results stand in their calls", () => {
  const found = items([
    user("1", "read it"),
    said("2", [text("One moment."), { type: "toolCall", id: "c1", name: "read", arguments: { path: "a.md" } }]),
    { role: "toolResult", toolCallId: "c1", toolName: "read", content: [text("words")], details: { durationMs: 300 }, __openclaw: { id: "3", recordTimestampMs: 2000 } },
    said("4", [text("Done.")]),
  ]);
  expect(found.map((item) => item.kind)).toEqual(["user", "answer"]);
  const answer = found[1]!;
  expect(answer.blocks.map((block) => block.kind)).toEqual(["text", "call", "text"]);
  expect(answer.blocks[1]).toMatchObject({ call: { about: "a.md", output: "words", state: "done", startedAt: 1700, endedAt: 2000 } });
  expect(answer.spent).toEqual({ model: "m", ms: 2000, tokens: 20, cached: 8, cost: 1 });
});

test("answers of other runs, or of none, stand alone", () => {
  const found = items([said("1", [text("a")], ""), said("2", [text("b")], ""), said("3", [text("c")], "r2")]);
  expect(found).toHaveLength(3);
});

test("a failed call, an error and what was cut are said", () => {
  const found = items([
    said("1", [{ type: "toolCall", id: "c", name: "exec", arguments: {} }], "r1", { stopReason: "toolUse" }),
    { role: "toolResult", toolCallId: "c", content: [text("no")], isError: true, __openclaw: { id: "2" } },
    said("3", [text("x")], "r9", { stopReason: "error", errorMessage: "too long" }),
    { ...said("4", [text("y")], "r8"), __openclaw: { id: "4", runId: "r8", truncated: true } },
  ]);
  expect(found[0]!.blocks[0]).toMatchObject({ call: { state: "failed" } });
  expect(found[1]!.fault).toBe("too long");
  expect(found[2]!.cut).toBe(true);
});

test("a page of history replaces all, older pages stand before it, and news are merged by id", () => {
  const log = new ChatLog();
  log.load({ messages: [user("3", "c"), user("4", "d")], totalMessages: 4, hasMore: true, deltaCursor: "k1" });
  expect(log.before).toBe(2);
  log.older({ messages: [user("1", "a"), user("2", "b"), user("3", "c")], totalMessages: 4, hasMore: false });
  expect(log.rows.map((row) => row.content)).toEqual(["a", "b", "c", "d"]);
  log.since({ kind: "delta", messages: [{ message: user("4", "d!") }, { message: user("5", "e") }], deltaCursor: "k2" });
  expect(log.rows.map((row) => row.content)).toEqual(["a", "b", "c", "d!", "e"]);
  expect(log.cursor).toBe("k2");
});

test("a run is shown as it comes, and goes when its rows are there", () => {
  const log = new ChatLog();
  log.load({ messages: [user("1", "hi", "r1")], totalMessages: 1, deltaCursor: "k" });
  const agent = (stream: string, data: Dict): boolean => log.hear("agent", { runId: "r1", stream, data, ts: 5000 });
  agent("lifecycle", { phase: "start", startedAt: 4000 });
  agent("thinking", { itemId: "r1:1", text: "hm" });
  agent("assistant", { itemId: "r1:1", text: "One" });
  agent("assistant", { itemId: "r1:1", text: "One moment" });
  agent("tool", { phase: "start", toolCallId: "c", name: "exec", args: { command: "ls" } });
  agent("tool", { phase: "update", toolCallId: "c", partialResult: { content: [text("a")] } });
  agent("tool", { phase: "result", toolCallId: "c", isError: false, result: { content: [text("a b")] } });
  agent("assistant", { itemId: "r1:2", text: "Done" });
  expect(log.live!.blocks.map((block) => (block.kind === "call" ? block.call.output : block.text))).toEqual(["hm", "One moment", "a b", "Done"]);
  expect(log.hear("chat", { runId: "r1", state: "final" })).toBe(true);
  log.since({ kind: "delta", messages: [{ message: said("2", [text("Done")]) }], deltaCursor: "k2" });
  expect(log.live).toBeNull();
  expect(log.items).toHaveLength(2);
});

test("of a run that is met midway only the words are shown that no row has", () => {
  const log = new ChatLog();
  log.load({
    messages: [user("1", "hi"), said("2", [text("First."), { type: "toolCall", id: "c", name: "ls", arguments: {} }])],
    totalMessages: 2, inFlightRun: { runId: "r1", text: "First.\n\nSecond", startedAt: 1 },
  });
  expect(log.live!.met).toBe("Second");
  log.hear("session.tool", { runId: "r1", stream: "tool", ts: 9, data: { phase: "result", toolCallId: "c", name: "ls", result: { content: [text("x")] } } });
  expect(log.live!.blocks).toEqual([]);
  expect(log.items[1]!.blocks[1]).toMatchObject({ call: { state: "done", output: "x" } });
  log.hear("agent", { runId: "r1", stream: "assistant", data: { itemId: "r1:2", text: "Second part" } });
  expect([log.live!.met, log.live!.blocks]).toEqual(["", [{ kind: "text", id: "text:r1:2", text: "Second part" }]]);
});

test("a failure that no row tells stays in view", () => {
  const log = new ChatLog();
  log.load({ messages: [user("1", "hi")], totalMessages: 1, deltaCursor: "k" });
  log.hear("chat", { runId: "r1", state: "error", errorMessage: "no model answers" });
  log.since({ kind: "delta", messages: [], deltaCursor: "k" });
  expect(log.live).toMatchObject({ fault: "no model answers", ended: true });
});

test("a call is told by what it is about", () => {
  expect(about({ command: "ls -la\nrm" })).toBe("ls -la");
  expect(about({ depth: 3 })).toBe('{"depth":3}');
  expect(about({})).toBe("");
});
