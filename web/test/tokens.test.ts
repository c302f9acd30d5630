/** Text can be read on what it stands on, in both themes: a contrast of 4.5 at least. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const CSS = readFileSync(new URL("../src/tokens.css", import.meta.url), "utf8");

function theme(selector: string): Record<string, string> {
  const body = CSS.slice(CSS.indexOf(selector)).split("}")[0]!;
  return Object.fromEntries([...body.matchAll(/--([\w-]+): (#[0-9a-f]{6})/g)].map((match) => [match[1]!, match[2]!]));
}

function light(colour: string): number {
  const part = (at: number): number => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

function contrast(one: string, other: string): number {
  const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b) as [number, number];
  return (bright + 0.05) / (dark + 0.05);
}

test.each([':root, :root[data-theme="light"]', ':root[data-theme="dark"]'])("%s", (selector) => {
  const colours = theme(selector);
  const pairs = [
    ...["ink", "ink2", "ink3", "accent", "ok", "warn", "bad"].flatMap((ink) => ["bg", "side", "card", "code"].map((on) => [ink, on])),
    ["accent-ink", "accent"], ["ink", "tint"], ["ink2", "warn-tint"], ["warn", "warn-tint"], ["ink", "bad-tint"], ["bad", "bad-tint"], ["accent", "tint"],
  ] as Array<[string, string]>;
  const low = pairs.map(([ink, on]) => [ink, on, contrast(colours[ink]!, colours[on]!)] as const).filter(([, , ratio]) => ratio < 4.5);
  expect(low).toEqual([]);
});

test("the dark theme is the same by choice and by the system", () => {
  expect(theme(':root:not([data-theme="light"])')).toEqual(theme(':root[data-theme="dark"]'));
});
