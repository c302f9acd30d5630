/**
 * The connection to the gateway by its public protocol: connect, requests, events; it comes back by itself.
 *
 * States: `connecting`, `open`, `offline` (it was open, and tries again), `token` (a secret is wanted), `pairing` (the
 * owner must approve this browser), `insecure` (no key can be had here), `refused` (a person must look).
 */
import { identity, possible, signedText, type Identity } from "./identity";
import { Refused, type Dict, type Frame, type Hello } from "./wire";

export type State = "connecting" | "open" | "offline" | "token" | "pairing" | "insecure" | "refused";
export type Listener = (payload: any, frame: Frame) => void;

export const SCOPES = [
  "operator.admin", "operator.read", "operator.write", "operator.approvals", "operator.questions", "operator.pairing",
] as const;
export const CAPS = ["agent-kind", "approvals", "exec-approvals", "plugin-approvals", "tool-events"] as const;
const CLIENT = { id: "openclaw-control-ui", mode: "webchat" } as const;
const TIMEOUT_MS = 30_000;
const FIRST_MS = 500;
const MOST_MS = 15_000;
const PAIRING_MS = 2_000;

/** How long to wait before try `n` (from 1): doubling to a limit, a fifth of it by chance. */
export function backOff(n: number, chance: number): number {
  const base = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(n - 1, 10));
  return Math.round(base * (0.9 + 0.2 * chance));
}

/** What a refused connect asks for. */
export function verdict(error: Refused): { state: State; retry: boolean } {
  const code = String(error.details.code ?? "");
  if (error.code === "NOT_PAIRED" && code === "PAIRING_REQUIRED") return { state: "pairing", retry: true };
  if (/^AUTH_(TOKEN|PASSWORD|DEVICE_TOKEN|SCOPE)/.test(code)) return { state: "token", retry: false };
  if (error.code === "UNAVAILABLE" || error.retryable) return { state: "offline", retry: true };
  return { state: "refused", retry: false };
}

export interface Secrets {
  /** The gateway's shared secret, as long as this browser has no token of its own. */
  shared(): string;
  setShared(text: string): void;
  device(): string;
  setDevice(text: string): void;
}

interface Waiting {
  resolve(value: any): void;
  reject(fault: Refused): void;
  timer: ReturnType<typeof setTimeout>;
}

export interface Call {
  timeoutMs?: number;
  /** Also hand over the first of two answers. */
  early?: (payload: any) => void;
}

export class Gateway {
  state: State = "connecting";
  hello: Hello | null = null;
  /** Why the last connect was refused. */
  fault: Refused | null = null;
  /** When it was last open, in milliseconds since 1970; 0 when never. */
  seenAt = 0;

  private socket: WebSocket | null = null;
  private who: Identity | null = null;
  private waiting = new Map<string, Waiting>();
  private listeners = new Map<string, Set<Listener>>();
  private watchers = new Set<() => void>();
  private opens: Array<() => void> = [];
  private tries = 0;
  private seq = 0;
  private next = 0;
  private buildId = "";
  private timer: ReturnType<typeof setTimeout> | undefined;
  private watchdog: ReturnType<typeof setTimeout> | undefined;

  /** `of` is empty for the gateway that the page came from; another one knows this browser by another key. */
  constructor(private readonly url: string, private readonly secrets: Secrets, private readonly of = "") {}

  /** Begin; it goes on until the page is left. */
  start(): void {
    if (!possible()) {
      this.become("insecure");
      return;
    }
    addEventListener("online", () => this.again());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.state === "offline") this.again();
    });
    this.again();
  }

  /** Connect now, not when the pause is over. */
  again(): void {
    if (this.state === "open") return;
    clearTimeout(this.timer);
    this.socket?.close();
    this.connect();
  }

  /** Try with this secret. */
  enter(secret: string): void {
    this.secrets.setShared(secret);
    this.tries = 0;
    this.become("connecting");
    this.again();
  }

  on(event: string, listener: Listener): () => void {
    const known = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, known.add(listener));
    return () => known.delete(listener);
  }

  /** Told of each change of `state`. */
  watch(changed: () => void): () => void {
    this.watchers.add(changed);
    return () => this.watchers.delete(changed);
  }

  /** Whether the gateway knows a method. */
  knows(method: string): boolean {
    return this.hello?.features.methods.includes(method) ?? false;
  }

  /** Ask. Waits for the connection. Rejects with Refused. */
  async call<T = Dict>(method: string, params: Dict = {}, how: Call = {}): Promise<T> {
    const limit = how.timeoutMs ?? TIMEOUT_MS;
    if (this.state !== "open") await this.opened(limit);
    return this.request<T>(method, params, limit);
  }

  private opened(limit: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Refused("OFFLINE", "the gateway does not answer")), limit);
      this.opens.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  private request<T>(method: string, params: Dict, limit: number): Promise<T> {
    const socket = this.socket;
    if (!socket || socket.readyState !== WebSocket.OPEN) {
      return Promise.reject(new Refused("OFFLINE", "the gateway does not answer"));
    }
    const id = `w${++this.next}`;
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.delete(id);
        reject(new Refused("TIMEOUT", `${method} took longer than ${Math.round(limit / 1000)} s`));
      }, limit);
      this.waiting.set(id, { resolve, reject, timer });
      socket.send(JSON.stringify({ type: "req", id, method, params }));
    });
  }

  private connect(): void {
    const socket = new WebSocket(this.url);
    this.socket = socket;
    socket.onmessage = (event) => this.socket === socket && this.read(JSON.parse(String(event.data)) as Frame);
    socket.onclose = () => this.socket === socket && this.lost();
  }

  private read(frame: Frame): void {
    this.alive();
    if (frame.type === "res") {
      const waiting = frame.id === undefined ? undefined : this.waiting.get(frame.id);
      if (!waiting || frame.id === undefined) return;
      if (frame.ok && frame.payload?.status === "accepted" && frame.payload?.runId === undefined) return;
      this.waiting.delete(frame.id);
      clearTimeout(waiting.timer);
      if (frame.ok) waiting.resolve(frame.payload);
      else waiting.reject(Refused.from(frame.error));
      return;
    }
    if (frame.type !== "event" || !frame.event) return;
    if (frame.event === "connect.challenge") {
      void this.introduce(frame.payload.nonce, frame.payload.ts);
      return;
    }
    if (frame.seq !== undefined) {
      const missed = this.seq && frame.seq !== this.seq + 1;
      this.seq = frame.seq;
      if (missed) this.tell("gap", null, frame);
    }
    this.tell(frame.event, frame.payload, frame);
  }

  private async introduce(nonce: string, ts: number): Promise<void> {
    try {
      this.who ??= await identity(this.of);
      const hello = await this.request<Hello>("connect", await this.params(this.who, nonce, ts), TIMEOUT_MS);
      this.welcome(hello);
    } catch (fault) {
      if (fault instanceof Refused) this.turned(fault);
      else {
        this.fault = new Refused("UNAVAILABLE", String(fault));
        this.become("insecure");
      }
    }
  }

  private async params(who: Identity, nonce: string, ts: number): Promise<Dict> {
    const shared = this.secrets.shared();
    const device = shared ? "" : this.secrets.device();
    const platform = navigator.platform || "web";
    const client = {
      ...CLIENT, version: "1", platform, deviceFamily: "browser", instanceId: who.id.slice(0, 16),
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, ...(this.buildId ? { buildId: this.buildId } : {}),
    };
    const text = signedText({
      deviceId: who.id, clientId: CLIENT.id, clientMode: CLIENT.mode, role: "operator", scopes: SCOPES, signedAt: ts,
      token: shared || device, nonce, platform, deviceFamily: "browser",
    });
    return {
      minProtocol: 4, maxProtocol: 4, client, role: "operator", scopes: SCOPES, caps: CAPS,
      auth: shared ? { token: shared, password: shared } : device ? { deviceToken: device } : {},
      device: { id: who.id, publicKey: who.publicKey, signature: await who.sign(text), signedAt: ts, nonce },
      locale: navigator.language, userAgent: navigator.userAgent,
    };
  }

  private welcome(hello: Hello): void {
    this.hello = hello;
    this.fault = null;
    this.tries = 0;
    this.seq = 0;
    if (hello.auth.deviceToken) {
      this.secrets.setDevice(hello.auth.deviceToken);
      this.secrets.setShared("");
    }
    this.alive();
    this.become("open");
    const opens = this.opens;
    this.opens = [];
    for (const open of opens) open();
  }

  private turned(fault: Refused): void {
    this.fault = fault;
    const code = String(fault.details.code ?? "");
    if (code === "PROTOCOL_MISMATCH" && fault.details.gatewayBuildId && !this.buildId) {
      this.buildId = String(fault.details.gatewayBuildId);
      this.tries = 0;
      this.become("offline");
      return;
    }
    if (code.startsWith("AUTH_DEVICE_TOKEN") || code === "AUTH_SCOPE_MISMATCH") this.secrets.setDevice("");
    if (code.startsWith("AUTH_TOKEN_MISMATCH")) this.secrets.setShared("");
    this.become(verdict(fault).state);
  }

  private lost(): void {
    clearTimeout(this.watchdog);
    for (const waiting of this.waiting.values()) {
      clearTimeout(waiting.timer);
      waiting.reject(new Refused("OFFLINE", "the connection was lost"));
    }
    this.waiting.clear();
    if (this.state === "open" || this.state === "connecting") this.become("offline");
    const pause = this.state === "offline" ? backOff(++this.tries, Math.random()) : PAIRING_MS;
    if (this.state === "offline" || this.state === "pairing") this.timer = setTimeout(() => this.connect(), pause);
  }

  private alive(): void {
    clearTimeout(this.watchdog);
    const tick = this.hello?.policy.tickIntervalMs ?? 30_000;
    this.watchdog = setTimeout(() => this.socket?.close(), 2 * tick + 5_000);
  }

  private become(state: State): void {
    if (this.state === "open") this.seenAt = Date.now();
    this.state = state;
    for (const changed of [...this.watchers]) changed();
  }

  private tell(event: string, payload: any, frame: Frame): void {
    for (const listener of [...(this.listeners.get(event) ?? [])]) listener(payload, frame);
  }
}
