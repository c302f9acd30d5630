/** This browser as a device: an Ed25519 key that never leaves it, and the signature each connect wants. */

const STORE = "garra";
const KEY = "device";

export interface Identity {
  id: string;
  publicKey: string;
  sign(text: string): Promise<string>;
}

export interface Signing {
  deviceId: string;
  clientId: string;
  clientMode: string;
  role: string;
  scopes: readonly string[];
  signedAt: number;
  token: string;
  nonce: string;
  platform: string;
  deviceFamily: string;
}

/** The text that is signed: version 3 of the protocol. */
export function signedText(of: Signing): string {
  const plain = (text: string) => text.trim().replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  return [
    "v3", of.deviceId, of.clientId, of.clientMode, of.role, of.scopes.join(","), String(of.signedAt), of.token, of.nonce,
    plain(of.platform), plain(of.deviceFamily),
  ].join("|");
}

export function base64url(bytes: ArrayBuffer | Uint8Array): string {
  const raw = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
  return btoa(String.fromCharCode(...raw)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export function hex(bytes: ArrayBuffer): string {
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function opened(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open(STORE, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore("keys");
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

function done<T>(asked: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

async function stored(key: string): Promise<CryptoKeyPair> {
  const db = await opened();
  const found = await done(db.transaction("keys").objectStore("keys").get(key));
  if (found) return found as CryptoKeyPair;
  const made = (await crypto.subtle.generateKey({ name: "Ed25519" }, false, ["sign", "verify"])) as CryptoKeyPair;
  await done(db.transaction("keys", "readwrite").objectStore("keys").put(made, key));
  return made;
}

/** Whether this page may have a key at all: browsers give one to https and to this machine only. */
export function possible(): boolean {
  return globalThis.isSecureContext === true && globalThis.crypto?.subtle !== undefined;
}

/** The key by which one gateway knows this browser: no other gateway gets a signature of it. */
export async function identity(of = ""): Promise<Identity> {
  const pair = await stored(KEY + (of && `@${of}`));
  const raw = await crypto.subtle.exportKey("raw", pair.publicKey);
  return {
    id: hex(await crypto.subtle.digest("SHA-256", raw)),
    publicKey: base64url(raw),
    sign: async (text) =>
      base64url(await crypto.subtle.sign({ name: "Ed25519" }, pair.privateKey, new TextEncoder().encode(text))),
  };
}
