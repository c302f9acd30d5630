/** Where the page keeps what lets it in: a shared secret for this tab only, the browser's own token for good. */
import type { Secrets } from "./gateway";

const SHARED = "garra.shared";
const DEVICE = "garra.deviceToken";

/** The secret handed over in the address, once: it is taken out of it at the same moment. */
export function handedOver(): string {
  const asked = new URLSearchParams(location.hash.slice(1));
  const token = asked.get("token") ?? "";
  if (token) {
    asked.delete("token");
    const rest = asked.toString();
    history.replaceState(history.state, "", location.pathname + location.search + (rest ? `#${rest}` : ""));
  }
  return token;
}

function kept(store: Storage, key: string): [() => string, (text: string) => void] {
  return [
    () => store.getItem(key) ?? "",
    (text) => (text ? store.setItem(key, text) : store.removeItem(key)),
  ];
}

/** Those of one gateway: `of` is empty for the page's own, else the address of another. */
export function secrets(of = ""): Secrets {
  const tail = of && `@${of}`;
  const [shared, setShared] = kept(sessionStorage, SHARED + tail);
  const [device, setDevice] = kept(localStorage, DEVICE + tail);
  return { shared, setShared, device, setDevice };
}
