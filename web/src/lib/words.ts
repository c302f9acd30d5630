/** The words of the page in the reader's language. English is always there, others are loaded when wanted. */
import { en } from "../words/en";

export type Word = keyof typeof en;
export type Words = Record<Word, string>;
export type Language = "en" | "zh";

export const LANGUAGES: Record<Language, string> = { en: "English", zh: "中文" };
const KEY = "garra.language";
let words: Words = en;
let language: Language = "en";

export function chosen(): Language {
  return language;
}

/** What the reader chose, else what the browser says. */
export function wanted(): Language {
  const kept = localStorage.getItem(KEY);
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export async function speak(to: Language, keep = false): Promise<void> {
  if (keep) localStorage.setItem(KEY, to);
  words = to === "zh" ? (await import("../words/zh")).zh : en;
  language = to;
  document.documentElement.lang = to === "zh" ? "zh-CN" : "en";
}

/** A phrase; `{name}` in it is filled from `values`. */
export function t(word: Word, values: Record<string, string | number> = {}): string {
  return filled(words[word], values);
}

/** The words for what the gateway names, or that name where there are none: it may know more than this page. */
export function named(word: string, otherwise: string): string {
  return (words as Record<string, string>)[word] ?? otherwise;
}

export function filled(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
