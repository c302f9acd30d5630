// What the built page is made from, and the hash that says so. tests/architecture computes the same in Python.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join, relative, sep } from "node:path";

const ROOT = new URL("..", import.meta.url).pathname;
const TOPS = ["index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"];
const FOLDERS = ["public", "src", "tools"];

function under(folder) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).split(sep).join("/"));
}

/** Every source file below web/, sorted by its bytes. */
export function sources() {
  return [...TOPS, ...FOLDERS.flatMap(under)].sort((a, b) => (a < b ? -1 : 1));
}

/** SHA-256 over `path NUL sha256-of-content NEWLINE` of each source file. */
export function fingerprint() {
  const all = createHash("sha256");
  for (const path of sources()) {
    const own = createHash("sha256").update(readFileSync(join(ROOT, path))).digest("hex");
    all.update(`${path}\0${own}\n`);
  }
  return all.digest("hex");
}
