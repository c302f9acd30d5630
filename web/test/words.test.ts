/** Both languages say the same things, and nothing is said that no page uses. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { en } from "../src/words/en";
import { zh } from "../src/words/zh";

const SOURCE = new URL("../src", import.meta.url).pathname;

function sources(): string {
  return readdirSync(SOURCE, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && !entry.parentPath.endsWith("words"))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"))
    .join("\n");
}

const values = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!).sort();

test("every key stands in both, with the same values", () => {
  expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
  for (const key of Object.keys(en) as Array<keyof typeof en>) expect([key, values(zh[key])]).toEqual([key, values(en[key])]);
});

test("every key is used", () => {
  const text = sources();
  const idle = Object.keys(en).filter((key) => !text.includes(`"${key}"`) && !text.includes(`\`${key.replace(/\.[^.]+$/, ".")}\${`));
  expect(idle).toEqual([]);
});
