/** What a person said and the gateway has not taken yet: kept over reloads, sent once, in order, when it is there. */
import type { Gateway } from "./gateway";
import { Refused, type Dict } from "./wire";

export interface Said {
  /** The idempotency key: the run gets it as its id, so the same one again is not said again. */
  id: string;
  sessionKey: string;
  message: string;
  at: number;
  params: Dict;
  fault?: string;
}

const KEY = "garra.outbox";
const LARGEST = 1_000_000; // characters kept over a reload

export class Outbox {
  waiting: Said[] = [];
  private watchers = new Set<() => void>();
  private busy = false;

  private readonly name: string;

  constructor(private readonly gateway: Gateway, private readonly store: Storage, of = "") {
    this.name = KEY + (of && `@${of}`);
    try {
      this.waiting = JSON.parse(store.getItem(this.name) ?? "[]") as Said[];
    } catch {
      this.waiting = [];
    }
    gateway.watch(() => void this.flush());
  }

  watch(changed: () => void): () => void {
    this.watchers.add(changed);
    return () => this.watchers.delete(changed);
  }

  of(sessionKey: string): Said[] {
    return this.waiting.filter((said) => said.sessionKey === sessionKey);
  }

  /** Say it now, or when the gateway is back. */
  add(said: Said): void {
    if (this.waiting.some((each) => each.id === said.id)) return;
    this.change([...this.waiting, said]);
    void this.flush();
  }

  drop(id: string): void {
    this.change(this.waiting.filter((said) => said.id !== id));
  }

  retry(id: string): void {
    this.change(this.waiting.map(({ fault, ...said }) => (said.id === id || !fault ? said : { ...said, fault })));
    void this.flush();
  }

  private async flush(): Promise<void> {
    if (this.busy || this.gateway.state !== "open") return;
    this.busy = true;
    try {
      for (let said = this.first(); said && this.gateway.state === "open"; said = this.first()) await this.send(said);
    } finally {
      this.busy = false;
    }
  }

  private first(): Said | undefined {
    return this.waiting.find((said) => !said.fault);
  }

  private async send(said: Said): Promise<void> {
    try {
      await this.gateway.call("chat.send", {
        ...said.params, sessionKey: said.sessionKey, message: said.message, idempotencyKey: said.id,
      });
      this.drop(said.id);
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      if (fault.code === "OFFLINE" || fault.code === "TIMEOUT") {
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        return;
      }
      this.change(this.waiting.map((each) => (each.id === said.id ? { ...each, fault: fault.message } : each)));
    }
  }

  private change(waiting: Said[]): void {
    this.waiting = waiting;
    const text = JSON.stringify(waiting);
    try {
      if (waiting.length && text.length <= LARGEST) this.store.setItem(this.name, text);
      else if (!waiting.length) this.store.removeItem(this.name);
    } catch {
      // a full store: what waits is then kept for as long as the page is open
    }
    for (const changed of [...this.watchers]) changed();
  }
}
