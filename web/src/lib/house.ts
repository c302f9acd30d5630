/** What every page shares: the connection, where the page lives, and the outbox. */
import { agree, choose } from "./elsewhere";
import { Gateway } from "./gateway";
import { Outbox } from "./outbox";
import { handedOver, secrets } from "./secrets";

/** The path below which the page lives, with its slash: from `<base href>`. */
export const base: string = new URL(document.baseURI).pathname;

const own = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${base}`;
const given = handedOver();

/** Which gateway this page speaks to. */
export const choice = choose(own);

const of = choice.elsewhere ? choice.url : "";
const kept = secrets(of);
if (given && !choice.proposed) kept.setShared(given);

export const gateway = new Gateway(choice.url, kept, of);
export const outbox = new Outbox(gateway, localStorage, of);

/** A person agreed to speak to the gateway that the address named; the secret that came with it is that one's. */
export function accept(): void {
  if (given) secrets(choice.proposed).setShared(given);
  agree(choice.proposed);
}
