/** The shapes of the public protocol that the page reads. What is not read here is left out. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Dict = { [name: string]: any };

export interface WireError {
  code: string;
  message: string;
  details?: Dict;
  retryable?: boolean;
  retryAfterMs?: number;
}

export interface Frame {
  type: "req" | "res" | "event";
  id?: string;
  ok?: boolean;
  payload?: any;
  error?: WireError;
  event?: string;
  seq?: number;
}

export interface Hello {
  server: { version: string; connId: string; bootId?: string };
  features: { methods: string[]; events: string[] };
  snapshot: Dict;
  auth: { method: string; role: string; scopes: string[]; deviceToken?: string };
  policy: { maxPayload?: number; tickIntervalMs?: number; attachments?: { maxBytes: number; maxImageBytes: number } };
}

/** A request that the gateway refused, or that never got through (`code` is then OFFLINE or TIMEOUT). */
export class Refused extends Error {
  constructor(readonly code: string, message: string, readonly details: Dict = {}, readonly retryable = false) {
    super(message);
  }

  static from(error: WireError | undefined): Refused {
    return new Refused(error?.code ?? "UNAVAILABLE", error?.message ?? "", error?.details ?? {}, error?.retryable ?? false);
  }
}
