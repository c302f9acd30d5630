/** The configuration: a form from the schema, or the text itself. Nothing is saved before its change was read. */
import { html, nothing, type TemplateResult } from "lit";

import "./config.css";
import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { diff } from "../lib/diff";
import { gateway } from "../lib/house";
import type { Dict, Json } from "../lib/wire";
import { t } from "../lib/words";
import { tried } from "../ui/act";
import { changes } from "../ui/changes";
import { sheet } from "../ui/dialog";
import { empty, notice } from "../ui/parts";

const DEEP = 4; // levels of keys below a section that become fields; what is deeper stands in the text
const MOST = 120; // fields of one look

interface Told {
  file: Dict;
  schema: Dict;
  hints: Record<string, Dict>;
}

interface Leaf {
  path: string;
  schema: Dict;
  hint: Dict;
}

/** The value at a dotted path. */
export function at(tree: unknown, path: string): unknown {
  return path.split(".").reduce<any>((value, key) => (value === null || typeof value !== "object" ? undefined : value[key]), tree);
}

/** `{ a: { b: value } }` for each path, merged: what `config.patch` takes. */
export function merged(wanted: ReadonlyMap<string, Json>): Dict {
  const out: Dict = {};
  for (const [path, value] of wanted) {
    const keys = path.split(".");
    let place = out;
    for (const key of keys.slice(0, -1)) place = place[key] ??= {};
    place[keys.at(-1)!] = value;
  }
  return out;
}

/** The file's text after a merge: null takes a key away. */
export function applied(tree: unknown, change: Dict): Dict {
  const out: Dict = { ...(tree !== null && typeof tree === "object" ? tree : {}) };
  for (const [key, value] of Object.entries(change)) {
    if (value === null) delete out[key];
    else if (typeof value === "object" && !Array.isArray(value)) out[key] = applied(out[key], value as Dict);
    else out[key] = value;
  }
  return out;
}

function leaves(schema: Dict, path: string, hints: Record<string, Dict>, depth = 0): Leaf[] {
  const found: Leaf[] = [];
  for (const [key, below] of Object.entries((schema.properties ?? {}) as Record<string, Dict>)) {
    const where = `${path}.${key}`;
    if (below.properties && depth < DEEP) found.push(...leaves(below, where, hints, depth + 1));
    else if (control(below) !== "text") found.push({ path: where, schema: below, hint: hints[where] ?? {} });
  }
  return found;
}

/** Words with what stands between backticks as code. */
function worded(text: string): TemplateResult[] {
  return text.split("`").map((part, place) => (place % 2 ? html`<code>${part}</code>` : html`${part}`));
}

/** How a value is asked for; `text` where only the text of the file can say it. */
function control(schema: Dict): "choice" | "switch" | "number" | "words" | "list" | "text" {
  if (schema.enum) return "choice";
  if (schema.type === "boolean") return "switch";
  if (schema.type === "integer" || schema.type === "number") return "number";
  if (schema.type === "string") return "words";
  if (schema.type === "array" && schema.items?.type === "string") return "list";
  return "text";
}

class Config extends Page {
  private wanted = new Map<string, Json>();
  private search = "";
  private told = new Loaded<Told>(this, () => this.read(), { on: ["config.changed"] });

  private async read(): Promise<Told> {
    const [file, schema] = await Promise.all([gateway.call("config.get", {}), gateway.call("config.schema", {})]);
    return { file, schema: schema.schema as Dict, hints: schema.uiHints as Record<string, Dict> };
  }

  private get section(): string {
    return this.params.section ?? "gateway";
  }

  override render(): TemplateResult {
    const actions = html`<label class="unseen" for="seek">${t("config.search")}</label>
      <input class="input" id="seek" type="search" placeholder=${t("do.search")} @input=${(event: Event) => { this.search = (event.target as HTMLInputElement).value.trim().toLowerCase(); this.change(); }}>
      <button class="btn" @click=${() => void this.text()}>${t("config.text")}</button>`;
    return html`${this.head(t("page.config"), this.told.value?.file.path ?? nothing, actions)}<div class="page">${this.told.show((got) => this.body(got))}</div>
      ${this.wanted.size ? html`<div class="save" role="region" aria-label=${t("config.changes")}><span>${t("config.changed", { n: this.wanted.size })}</span>
        <button class="btn p" @click=${() => void this.save()}>${t("config.compare")}</button><button class="btn q" @click=${() => { this.wanted.clear(); this.change(); }}>${t("config.drop")}</button></div>` : nothing}`;
  }

  private body(got: Told): TemplateResult {
    const sections = Object.entries(got.schema.properties as Record<string, Dict>).filter(([key, below]) => !key.startsWith("$") && leaves(below, key, got.hints).length);
    const shown = this.search
      ? sections.flatMap(([key, below]) => leaves(below, key, got.hints)).filter((each) => `${each.path} ${each.schema.description ?? ""}`.toLowerCase().includes(this.search))
      : leaves((got.schema.properties as Record<string, Dict>)[this.section] ?? {}, this.section, got.hints);
    const issues = got.file.issues as Dict[];
    return html`${issues.length ? notice(t("config.invalid"), html`${t("config.invalid.words")}<ul>${issues.map((each) => html`<li><code>${each.path}</code> ${each.message}</li>`)}</ul>`, { kind: "bad" }) : nothing}
      ${(got.file.warnings as Dict[]).map((each) => notice(t("config.warning"), html`<code>${each.path ?? ""}</code> ${each.message ?? each}`, { kind: "warn" }))}
      <div class="two"><nav class="parts" aria-label=${t("config.sections")}>${sections.map(([key]) => html`<a href=${`config/${key}`} aria-current=${!this.search && key === this.section ? "page" : nothing}>${key}</a>`)}</nav>
        <div>${this.search ? nothing : html`<p class="quiet">${(got.schema.properties as Record<string, Dict>)[this.section]?.description ? worded(String((got.schema.properties as Record<string, Dict>)[this.section]!.description)) : nothing}</p>`}
          ${shown.length ? shown.slice(0, MOST).map((each) => this.leaf(each, got.file)) : empty(t("find.none"), t("find.none.words"))}
          ${shown.length > MOST ? html`<p class="small quiet">${t("config.more", { n: shown.length - MOST })}</p>` : nothing}
          <p class="small quiet">${t("config.rest")}</p></div></div>`;
  }

  private leaf(each: Leaf, file: Dict): TemplateResult {
    const id = `key-${each.path.replaceAll(".", "-")}`;
    const stored = at(file.parsed, each.path) as Json | undefined;
    const value = this.wanted.has(each.path) ? this.wanted.get(each.path) : stored;
    const mark = this.wanted.has(each.path) ? html` <span class="tag warn">${t("config.mark")}</span>` : nothing;
    return html`<div class="field"><label for=${id}><code>${each.path}</code>${mark}</label>${this.input(id, each, value ?? null)}
      ${each.schema.description ? html`<small>${worded(String(each.schema.description))}</small>` : nothing}
      ${stored !== undefined ? html`<button class="btn q clear" aria-label=${t("config.unset.of", { path: each.path })} @click=${() => this.want(each.path, null, stored)}>${t("config.unset")}</button>` : nothing}</div>`;
  }

  private input(id: string, { path, schema, hint }: Leaf, value: Json): TemplateResult {
    const usual = schema.default === undefined || schema.default === "" ? "" : t("config.usual", { value: Array.isArray(schema.default) ? schema.default.join(", ") || "–" : String(schema.default) });
    const stored = () => at(this.told.value!.file.parsed, path) as Json | undefined;
    const text = (event: Event) => (event.target as HTMLInputElement).value;
    switch (control(schema)) {
      case "switch":
        return html`<select id=${id} @change=${(event: Event) => this.want(path, text(event) === "" ? null : text(event) === "true", stored())}>
          <option value="" ?selected=${value === null}>${usual || t("config.unsaid")}</option><option value="true" ?selected=${value === true}>${t("config.on")}</option><option value="false" ?selected=${value === false}>${t("config.off")}</option></select>`;
      case "choice":
        return html`<select id=${id} @change=${(event: Event) => this.want(path, text(event) || null, stored())}><option value="" ?selected=${value === null}>${usual || t("config.unsaid")}</option>
          ${(schema.enum as Json[]).map((each) => html`<option value=${String(each)} ?selected=${value === each}>${each}</option>`)}</select>`;
      case "number":
        return html`<input id=${id} type="number" step="any" .value=${value === null ? "" : String(value)} placeholder=${usual} min=${schema.minimum ?? nothing} max=${schema.maximum ?? nothing} @change=${(event: Event) => this.want(path, text(event) === "" ? null : Number(text(event)), stored())}>`;
      case "list":
        return html`<input id=${id} .value=${Array.isArray(value) ? value.join(", ") : ""} placeholder=${usual || t("config.list")} @change=${(event: Event) => this.want(path, text(event).trim() ? text(event).split(",").map((each) => each.trim()).filter(Boolean) : null, stored())}>`;
      default:
        if (hint.sensitive) return html`<input id=${id} type="password" autocomplete="off" placeholder=${value ? t("config.secret.kept") : t("config.secret.none")} @change=${(event: Event) => this.want(path, text(event) || null, undefined)}>`;
        return html`<input id=${id} .value=${typeof value === "string" ? value : value === null ? "" : JSON.stringify(value)} ?disabled=${value !== null && typeof value === "object"} placeholder=${usual} @change=${(event: Event) => this.want(path, text(event) || null, stored())}>`;
    }
  }

  private want(path: string, value: Json, stored: Json | undefined): void {
    if (JSON.stringify(value) === JSON.stringify(stored ?? null)) this.wanted.delete(path);
    else this.wanted.set(path, value);
    this.change();
  }

  /** Show what the form changes, and do it. The text is compared as the gateway has it: without its secrets. */
  private async save(): Promise<void> {
    const got = this.told.value!;
    const change = merged(this.wanted);
    const secret = [...this.wanted.keys()].filter((path) => got.hints[path]?.sensitive);
    const shownChange = merged(new Map([...this.wanted].map(([path, value]) => [path, secret.includes(path) && value ? "••••" : value])));
    const [before, after] = [got.file.parsed, applied(got.file.parsed, shownChange)].map((tree) => JSON.stringify(tree, null, 2));
    if (!(await this.agreed(diff(before!, after!)))) return;
    if (await tried("config.patch", { raw: JSON.stringify(change), baseHash: got.file.hash }, t("config.saved"))) this.wanted.clear();
    void this.told.reload();
  }

  private async agreed(lines: ReturnType<typeof diff>): Promise<boolean> {
    const said = await sheet<boolean>(t("config.change"), (close) => html`${changes(t("config.change"), lines)}
      <div class="go"><button class="btn p" @click=${() => close(true)}>${t("config.save")}</button><button class="btn q" @click=${() => close()}>${t("do.cancel")}</button></div>`);
    return said === true;
  }

  /** The whole text, with its comments. Secrets stand as marks, and a mark that is left alone leaves the secret alone. */
  private async text(kept?: string): Promise<void> {
    const got = this.told.value;
    if (!got) return;
    const before = String(got.file.raw ?? "{}");
    const shown = kept ?? before;
    const wanted = await sheet<string>(t("config.text.title"), (close) => html`<form @submit=${(event: Event) => { event.preventDefault(); close((event.target as HTMLFormElement).querySelector("textarea")!.value); }}>
      <div class="field"><label for="raw">${t("config.text.label")}</label><textarea id="raw" rows="18" spellcheck="false" .value=${shown}></textarea><small>${t("config.text.words")}</small></div>
      <div class="go"><button class="btn p">${t("config.compare")}</button><button type="button" class="btn q" @click=${() => close()}>${t("do.cancel")}</button></div></form>`);
    if (wanted === undefined || wanted === before || !(await this.agreed(diff(before, wanted)))) return;
    const done = await tried("config.set", { raw: wanted, baseHash: got.file.hash }, t("config.saved"));
    await this.told.reload();
    if (!done) await this.text(wanted); // what was written is not lost where the file has changed meanwhile
  }
}

customElements.define("page-config", Config);
