/** The connection's decisions: how long it waits, what a refusal asks for, what is signed, where a path leads. */
import { expect, test, vi } from "vitest";
import { backOff, verdict } from "../src/lib/gateway";
import { base64url, signedText } from "../src/lib/identity";
import { holds, mails, median } from "../src/lib/mail";
import { Outbox } from "../src/lib/outbox";
import { story, widths } from "../src/lib/track";
import { Refused, type Dict } from "../src/lib/wire";

test("the pause doubles to a limit", () => {
  expect([1, 2, 3, 4, 9].map((n) => backOff(n, 0.5))).toEqual([500, 1000, 2000, 4000, 15_000]);
  expect(backOff(1, 0)).toBe(450);
});

test.each([
  ["NOT_PAIRED", "PAIRING_REQUIRED", "pairing"], ["INVALID_REQUEST", "AUTH_TOKEN_MISMATCH", "token"],
  ["INVALID_REQUEST", "AUTH_DEVICE_TOKEN_MISMATCH", "token"], ["UNAVAILABLE", "", "offline"],
  ["INVALID_REQUEST", "CONTROL_UI_ORIGIN_NOT_ALLOWED", "refused"],
])("%s %s is answered by %s", (code, details, state) => {
  expect(verdict(new Refused(code, "", { code: details })).state).toBe(state);
});

test("the signed text is that of version 3", () => {
  const text = signedText({
    deviceId: "d", clientId: "openclaw-control-ui", clientMode: "webchat", role: "operator", scopes: ["a", "b"], signedAt: 5,
    token: "t", nonce: "n", platform: " Linux X86 ", deviceFamily: "Browser",
  });
  expect(text).toBe("v3|d|openclaw-control-ui|webchat|operator|a,b|5|t|n|linux x86|browser");
  expect(base64url(new Uint8Array([251, 255, 0]))).toBe("-_8A");
});

function box(state: string, call: (method: string, params: Dict) => Promise<Dict>): { outbox: Outbox; kept: Map<string, string>; moved: () => void } {
  const kept = new Map<string, string>();
  let moved = (): void => {};
  const gateway = { state, call, watch: (changed: () => void) => (moved = changed) };
  const store = { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, text: string) => kept.set(key, text), removeItem: (key: string) => kept.delete(key) };
  return { outbox: new Outbox(gateway as never, store as never), kept, moved: () => { gateway.state = "open"; moved(); } };
}

const words = { id: "k1", sessionKey: "main", message: "hi", at: 1, params: {} };

test("what is said offline waits, is kept, and goes out once with its key", async () => {
  const sent: Dict[] = [];
  const { outbox, kept, moved } = box("offline", async (_, params) => { sent.push(params); return {}; });
  outbox.add(words);
  outbox.add(words);
  expect([sent.length, outbox.waiting.length, kept.size]).toEqual([0, 1, 1]);
  moved();
  await vi.waitFor(() => expect(outbox.waiting).toEqual([]));
  expect(sent).toEqual([{ sessionKey: "main", message: "hi", idempotencyKey: "k1" }]);
  expect(kept.size).toBe(0);
});

test("what the gateway refuses says why and is not tried by itself", async () => {
  const { outbox } = box("open", () => Promise.reject(new Refused("INVALID_REQUEST", "too large")));
  outbox.add(words);
  await vi.waitFor(() => expect(outbox.waiting[0]?.fault).toBe("too large"));
  outbox.drop("k1");
  expect(outbox.waiting).toEqual([]);
});

test("a message and its answers are one row, by the worst of them", () => {
  const found = mails([
    { id: "o1", direction: "out", state: "unsure", inboxId: "i1", at: 30, updatedAt: 40, tries: 2, reason: "no word" },
    { id: "o9", direction: "out", state: "sent", at: 25, chat: "5", channel: "irc", text: "report" },
    { id: "i1", direction: "in", state: "done", at: 10, updatedAt: 20, sender: { id: "7", name: "Ines" }, channel: "matrix", text: "hello there" },
  ]);
  expect(found.map((mail) => [mail.who, mail.standing, mail.mend, mail.took])).toEqual([["5", "past", "", null], ["Ines", "unsure", "o1", 20]]);
  expect(holds(found[1]!, "INES hello")).toBe(true);
  expect(holds(found[1]!, "ines bye")).toBe(false);
  expect([median([3, 1, 2]), median([4, 2]), median([])]).toEqual([2, 3, null]);
});

test("the way of a message is told by its stations, each as wide as its time", () => {
  const at = (station: string, ms: number): Dict => ({ station, at: ms });
  const told = story([at("received", 0), at("adopted", 10), at("model", 20), at("tool", 420), at("model", 520), at("written", 920), at("sent", 1000)], false, 0);
  expect(told).toMatchObject({ model: 800, tool: 100, first: 920, total: 1000 });
  expect(told.pieces.map((piece) => piece.kind)).toEqual(["wait", "model", "tool", "model", "send"]);
  expect(Math.round(widths(told.pieces).reduce((sum, width) => sum + width, 0))).toBe(100);
  expect(story([at("received", 0), at("model", 5)], true, 1005).pieces.map((piece) => piece.kind)).toEqual(["wait", "model", "todo"]);
});
