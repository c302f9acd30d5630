/** What every page shares: the connection, where the page lives, and the outbox. */
import { Gateway } from "./gateway";
import { Outbox } from "./outbox";
import { handedOver, secrets } from "./secrets";

/** The path below which the page lives, with its slash: from `<base href>`. */
export const base: string = new URL(document.baseURI).pathname;

const kept = secrets();
const given = handedOver();
if (given) kept.setShared(given);

export const gateway = new Gateway(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${base}`, kept);
export const outbox = new Outbox(gateway, localStorage);
