/**
 * Another gateway that this page speaks to instead of the one it came from: named in the address as `gatewayUrl`, agreed
 * to by a person, kept for this tab. Nothing that belongs to one gateway (secrets, this browser's key, what waits to be
 * said) is ever used with another.
 */
const KEY = "garra.gateway";
const NAME = "gatewayUrl";

/** An address of a gateway as it is kept and compared; empty for what is none. */
export function socketOf(text: string): string {
  try {
    const url = new URL(text);
    const plain = !url.username && !url.password && !url.search && !url.hash;
    return plain && (url.protocol === "ws:" || url.protocol === "wss:") ? url.href : "";
  } catch {
    return "";
  }
}

/** What the page's address names, behind the `?` or the `#`. */
function named(): string {
  const hash = new URLSearchParams(location.hash.slice(1));
  return socketOf(new URLSearchParams(location.search).get(NAME) ?? hash.get(NAME) ?? "");
}

export interface Choice {
  /** The gateway to speak to. */
  url: string;
  /** It is not the one that this page came from. */
  elsewhere: boolean;
  /** One that the address names and nobody has agreed to: nothing is sent to anybody before. */
  proposed: string;
  /** The page is on its way to an address of its own that names the gateway: nothing begins here any more. */
  leaves: boolean;
}

export function choose(own: string): Choice {
  const asked = window.top === window ? named() : "";
  const kept = sessionStorage.getItem(KEY) ?? "";
  if (asked && asked !== own && asked !== kept) return { url: own, elsewhere: false, proposed: asked, leaves: false };
  if (asked === own) sessionStorage.removeItem(KEY);
  const elsewhere = kept !== "" && asked !== own;
  // The page's policy admits the socket that its own address names: without it the page is loaded again with it.
  const leaves = elsewhere && !asked;
  if (leaves) location.replace(address(kept));
  return { url: elsewhere ? kept : own, elsewhere, proposed: "", leaves };
}

function address(url: string): string {
  const here = new URL(location.href);
  here.searchParams.set(NAME, url);
  here.hash = "";
  return here.href;
}

/** From now on this tab speaks to `url`. */
export function agree(url: string): void {
  sessionStorage.setItem(KEY, url);
  location.replace(address(url));
}

/** From now on it speaks to its own again. */
export function back(): void {
  sessionStorage.removeItem(KEY);
  location.replace(new URL(document.baseURI).pathname);
}
