// Puts the build where the wheel takes it from: files, each also compressed, and a manifest; then what is old goes.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";
import { fingerprint } from "./sources.mjs";

const WEB = new URL("..", import.meta.url).pathname;
const FROM = join(WEB, "dist");
const TO = join(WEB, "../src/garra/faces/web/assets");
const TYPES = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
  webmanifest: "application/manifest+json",
};
const SMALL = 512; // bytes below which compressing gains nothing
const FIRST = 150 * 1024; // bytes of the first paint at most, compressed

const modules = JSON.parse(readFileSync(join(FROM, "modules.json"), "utf8"));
rmSync(join(FROM, "modules.json"));

/** The files that a module needs, itself, its styles and what it imports at once. */
function needs(name, found = new Set()) {
  const chunk = modules[name];
  for (const file of [chunk.file, ...(chunk.css ?? [])]) found.add(file);
  for (const other of chunk.imports ?? []) if (!found.has(modules[other].file)) needs(other, found);
  return found;
}

const paths = (root) =>
  readdirSync(root, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join("/"));

function write(path, data) {
  mkdirSync(dirname(path), { recursive: true });
  if (!existsSync(path) || !readFileSync(path).equals(data)) writeFileSync(path, data);
}

const files = {};
const kept = new Set(["manifest.json"]);
for (const path of paths(FROM).sort()) {
  const data = readFileSync(join(FROM, path));
  const type = TYPES[path.split(".").pop()];
  if (!type) throw new Error(`${path}: say its type in tools/place.mjs`);
  write(join(TO, path), data);
  kept.add(path);
  const packed = data.length >= SMALL ? gzipSync(data, { level: 9 }) : null;
  if (packed) {
    // An equal content may be packed into other bytes by another zlib: what is there and right stays.
    const beside = join(TO, `${path}.gz`);
    const before = join(TO, "manifest.json");
    const same = existsSync(beside) && existsSync(before) && JSON.parse(readFileSync(before)).files[path]?.sha256;
    if (same !== createHash("sha256").update(data).digest("hex")) write(beside, packed);
    kept.add(`${path}.gz`);
  }
  files[path] = {
    type,
    size: data.length,
    gzip: packed ? packed.length : 0,
    sha256: createHash("sha256").update(data).digest("hex"),
    immutable: path.startsWith("assets/"),
  };
}

const always = new Set(["index.html", ...needs("index.html"), ...needs("src/app/shell.ts")]);
const weigh = (names) => [...names].reduce((sum, name) => sum + (files[name].gzip || files[name].size), 0);
const pages = Object.keys(modules).filter((name) => /^src\/pages\/[^/]+\.ts$/.test(name));
let [weight, first] = [0, [...always]];
for (const name of pages) {
  const all = new Set([...always, ...needs(name)]);
  if (weigh(all) > weight) [weight, first] = [weigh(all), [...all]];
}
if (weight > FIRST) throw new Error(`the first paint is ${weight} bytes compressed, ${FIRST} are allowed: ${first.join(", ")}`);

const manifest = { sources: fingerprint(), first, files };
write(join(TO, "manifest.json"), Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`));
for (const path of paths(TO)) if (!kept.has(path)) rmSync(join(TO, path));
console.log(`first paint ${(weight / 1024).toFixed(1)} KiB compressed, ${Object.keys(files).length} files`);
