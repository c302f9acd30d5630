/** Times, amounts and sizes as people read them. */
import { chosen, t } from "./words";

const locale = (): string => (chosen() === "zh" ? "zh-CN" : "en-GB");

export function clock(ms: number): string {
  return new Date(ms).toLocaleTimeString(locale(), { hour: "2-digit", minute: "2-digit" });
}

/** The time for today, else the day as well. */
export function when(ms: number, now = Date.now()): string {
  const at = new Date(ms);
  if (at.toDateString() === new Date(now).toDateString()) return clock(ms);
  const year = at.getFullYear() !== new Date(now).getFullYear() ? { year: "numeric" as const } : {};
  return `${at.toLocaleDateString(locale(), { day: "numeric", month: "short", ...year })} ${clock(ms)}`;
}

/** A length of time: `0.3 s`, `14 s`, `4 min`, `2 h`, `3 d`. */
export function lasted(ms: number): string {
  const s = Math.max(0, ms) / 1000;
  if (s < 9.95) return t("format.seconds", { n: s.toFixed(1) });
  if (s < 90) return t("format.seconds", { n: Math.round(s) });
  if (s < 5400) return t("format.minutes", { n: Math.round(s / 60) });
  if (s < 129600) return t("format.hours", { n: Math.round(s / 3600) });
  return t("format.days", { n: Math.round(s / 86400) });
}

export function ago(ms: number, now = Date.now()): string {
  return t("format.ago", { time: lasted(Math.max(0, now - ms)).replace(/\.\d/, "") });
}

export function count(n: number): string {
  return n.toLocaleString(locale());
}

/** US dollars, with as many places as tell something. */
export function money(usd: number): string {
  const places = usd === 0 || usd >= 0.1 ? 2 : usd >= 0.001 ? 3 : 5;
  return `$${usd.toFixed(places)}`;
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  if (n < 1024 ** 2) return `${Math.round(n / 1024)} KiB`;
  return `${(n / 1024 ** 2).toFixed(1)} MiB`;
}

/** Words of a model on one line of a list: without the signs of Markdown. */
export function plain(text: string): string {
  return text.replace(/\*\*|__|`/g, "").replace(/^[#>\-*\s]+/, "");
}
