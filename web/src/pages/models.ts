/** Which models there are, which one answers, and how the keys and logins of each provider stand. No key is shown. */
import { html, nothing, type TemplateResult } from "lit";

import "./models.css";
import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { count, lasted } from "../lib/format";
import { gateway } from "../lib/house";
import type { Dict } from "../lib/wire";
import { t, type Word } from "../lib/words";
import { tried } from "../ui/act";
import { sheet, sure } from "../ui/dialog";
import { dot, empty, table } from "../ui/parts";
import { toast } from "../ui/say";

const MOST = 60; // models of one look; the search finds the others
const STANDS: Record<string, "ok" | "warn" | "bad" | "off"> = { ok: "ok", static: "ok", expiring: "warn", expired: "bad", missing: "off" };

interface Told {
  models: Dict[];
  providers: Dict[];
}

class Models extends Page {
  private search = "";
  private told = new Loaded<Told>(this, () => this.read());

  private async read(): Promise<Told> {
    const [list, standing] = await Promise.all([gateway.call("models.list", {}), gateway.call("models.authStatus", {})]);
    return { models: list.models as Dict[], providers: standing.providers as Dict[] };
  }

  override render(): TemplateResult {
    const actions = html`<label class="unseen" for="seek">${t("models.search")}</label>
      <input class="input" id="seek" type="search" placeholder=${t("do.search")} @input=${(event: Event) => { this.search = (event.target as HTMLInputElement).value.trim().toLowerCase(); this.change(); }}>`;
    return html`${this.head(t("page.models"), t("models.meta"), actions)}<div class="page">${this.told.show((got) => this.body(got))}</div>`;
  }

  private body(got: Told): TemplateResult {
    const held = got.providers.filter((each) => each.status !== "missing" || each.profiles.length);
    const lacking = got.providers.filter((each) => !held.includes(each));
    const usable = got.models.filter((each) => each.available !== false);
    const found = usable.filter((each) => `${each.provider}/${each.id} ${each.name}`.toLowerCase().includes(this.search));
    return html`<h2 class="sect">${t("models.logins")}</h2>
      ${held.length ? held.map((each) => this.provider(each)) : empty(t("models.nokey"), t("models.nokey.words"))}
      ${lacking.length ? html`<details class="lacking"><summary>${t("models.lacking", { n: lacking.length })}</summary>
        <div class="go">${lacking.map((each) => html`<button class="btn" @click=${() => void this.enter(String(each.provider))}>${each.displayName}</button>`)}</div></details>` : nothing}
      <h2 class="sect">${t("models.usable")}</h2>
      ${found.length ? table(t("models.usable"), [
        { name: t("models.name"), show: (row: Dict) => html`${row.name}<div class="small quiet">${row.provider}/${row.id}</div>` },
        { name: t("models.context"), show: (row: Dict) => (row.contextWindow ? count(row.contextWindow) : "–"), right: true },
        { name: t("models.thinks"), show: (row: Dict) => (row.reasoning ? t("models.yes") : "–") },
        { name: t("models.answers"), show: (row: Dict) => this.standard(row), right: true },
      ], found.slice(0, MOST)) : empty(t("find.none"), this.search ? t("find.none.words") : t("models.nokey.words"))}
      ${found.length > MOST ? html`<p class="small quiet">${t("models.more", { n: found.length - MOST })}</p>` : nothing}`;
  }

  private standard(row: Dict): unknown {
    const name = `${row.provider}/${row.id}`;
    if ((row.tags ?? []).includes("default")) return html`<span class="tag ok">${t("models.default")}</span>`;
    return html`<button class="btn" aria-label=${t("models.take.of", { name })} @click=${() => void this.take(name)}>${t("models.take")}</button>`;
  }

  private async take(name: string): Promise<void> {
    if (!(await sure(t("models.take.sure", { name }), t("models.take.words"), t("models.take")))) return;
    const now = await tried("config.get", {});
    if (!now) return;
    const raw = JSON.stringify({ agents: { defaults: { model: { primary: name } } } });
    await tried("config.patch", { raw, baseHash: now.hash }, t("models.taken", { name }));
    void this.told.reload();
  }

  private provider(each: Dict): TemplateResult {
    const name = String(each.provider);
    return html`<article class="card login"><div>${dot(STANDS[each.status] ?? "off")} <b>${each.displayName}</b>
        <span class="quiet small">${each.profiles.length ? "" : each.apiKey ? t(each.apiKey.source === "config" ? "models.from.config" : "models.from.env") : t("models.is.missing")}</span>
        ${each.profiles.length ? html`<ul class="rows small">${(each.profiles as Dict[]).map((login) => this.login(name, login))}</ul>` : nothing}</div>
      <div class="go"><button class="btn" aria-label=${t("models.try.of", { name })} @click=${() => void this.probe(name)}>${t("models.try")}</button>
        <button class="btn q" aria-label=${t("models.key.of", { name })} @click=${() => void this.enter(name)}>${t("models.key")}</button></div></article>`;
  }

  private login(provider: string, login: Dict): TemplateResult {
    const ends = login.remainingMs > 0 ? t("models.ends", { time: lasted(login.remainingMs) }) : "";
    const kind = login.type === "api_key" ? t("models.kind.key") : t("models.kind.login");
    return html`<li>${login.label} <span class="quiet">${[kind, t(`models.is.${login.status}` as Word), login.reasonCode ? t("models.rests", { why: login.reasonCode }) : "", ends].filter(Boolean).join(" · ")}</span>
      ${login.source === "store" ? html`<button class="btn q" aria-label=${t("models.forget.of", { name: login.label })} @click=${() => void this.forget(provider, login)}>${t("models.forget")}</button>` : nothing}</li>`;
  }

  private async probe(provider: string): Promise<void> {
    const got = await tried("models.probe", { provider });
    if (!got) return;
    toast(got.status === "ok" ? t("models.tried", { name: provider }) : t("models.tried.not", { name: provider, why: got.error ?? (got.results as Dict[])[0]?.error ?? got.status }));
    void this.told.reload();
  }

  private async forget(provider: string, login: Dict): Promise<void> {
    if (!(await sure(t("models.forget.sure", { name: login.label }), t("models.forget.words"), t("models.forget")))) return;
    await tried("models.authLogout", { provider, profileIds: [login.profileId] });
    void this.told.reload();
  }

  private async enter(provider: string): Promise<void> {
    const text = await sheet<string>(t("models.key.of", { name: provider }), (close) => html`<form @submit=${(event: Event) => { event.preventDefault(); close(new FormData(event.target as HTMLFormElement).get("key") as string); }}>
      <div class="field"><label for="key">${t("models.key.label")}</label><input id="key" name="key" type="password" autocomplete="off" required><small>${t("models.key.words")}</small></div>
      <div class="go"><button class="btn p">${t("models.key.keep")}</button><button type="button" class="btn q" @click=${() => close()}>${t("do.cancel")}</button></div></form>`);
    if (text) await tried("models.authSetApiKey", { provider, apiKey: text }, t("models.key.kept"));
    void this.told.reload();
  }
}

customElements.define("page-models", Models);
