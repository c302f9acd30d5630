/** `<garra-app>`: the frame around every page. */
import { html, nothing, type TemplateResult } from "lit";
import { unsafeStatic, html as staticHtml } from "lit/static-html.js";
import { back } from "../lib/elsewhere";
import { choice, gateway, outbox } from "../lib/house";
import { ago } from "../lib/format";
import { LANGUAGES, chosen, speak, t, type Language } from "../lib/words";
import { HOME, ROUTES, type Route } from "../routes";
import { sheet } from "../ui/dialog";
import { gate } from "./gate";
import { keys } from "./keys";
import { Links } from "./links";
import { Page, Part } from "./page";
import { fits, go, here, listen, to, watchPlace } from "./router";
import { theme, wear, type Theme } from "./theme";

const MARK = html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" aria-hidden="true"><path d="M5 21c-2-8 0-15 8-18-3 4-3 7-1 9"/><path d="M10 21c-1-5 1-9 7-11-2 3-2 5 0 7"/><path d="M15 21c0-3 1-5 5-6"/></svg>`;

class App extends Part {
  private route: Route | null = null;
  private params: Record<string, string> = {};
  private broken = "";
  private links = new Links(this);

  protected override begin(): void {
    this.until(gateway.watch(() => {
      if (gateway.state === "open" && this.route && !known(this.route)) void this.move();
      this.change();
    }));
    this.until(outbox.watch(() => this.change()));
    this.until(watchPlace(() => void this.move()));
    listen();
    keys(() => this.page);
    void this.move();
    const minute = setInterval(() => this.change(), 30_000);
    this.until(() => clearInterval(minute));
  }

  private get page(): Page | null {
    const page = this.querySelector(".here")?.firstElementChild;
    return page instanceof Page ? page : null;
  }

  private async move(): Promise<void> {
    const { path } = here();
    const found = ROUTES.map((route) => [route, fits(route.path, path)] as const).find(([route, values]) => values && known(route));
    if (!found) {
      go((ROUTES.find((route) => route.path === HOME && known(route)) ?? ROUTES.find(known))!.path.replace(/\/:.*$/, ""), { replace: true });
      return;
    }
    const [route, params] = found;
    try {
      await route.load();
    } catch {
      // The page's file is gone: the gateway was updated under the open page.
      this.broken = route.path;
      this.change();
      return;
    }
    if (here().path !== path) return;
    const same = this.route === route;
    this.route = route;
    this.params = params ?? {};
    this.broken = "";
    document.title = `${t(route.name)} · Garra`;
    this.requestUpdate();
    await this.updateComplete;
    this.settle(same);
  }

  private settle(same: boolean): void {
    const page = this.page;
    if (!page) return;
    page.params = this.params;
    page.query = here().query;
    page.moved();
    if (!same) this.querySelector<HTMLElement>("#main")?.focus({ preventScroll: true });
  }

  override render(): TemplateResult {
    return gate() ?? this.whole();
  }

  override updated(): void {
    const page = this.page;
    if (page && page.params !== this.params) this.settle(true);
  }

  private whole(): TemplateResult {
    return html`<a class="skip" href="#main" @click=${this.skip}>${t("app.skip")}</a><div class="app">
      <nav class="side" aria-label=${t("app.nav")}>
        <div class="brand">${MARK}Garra</div>
        ${this.group("top")}
        ${this.named("agent", t("group.agent"))}${this.named("house", t("group.house"))}
        ${this.links.show()}
        <span class="grow"></span>
        <button class="btn q" @click=${() => this.look()}>${t("app.look")}</button>
      </nav>
      <main class="content" id="main" tabindex="-1">${this.banner()}
        <div class="here">${this.broken ? this.outdated() : this.element()}</div></main>
      <nav class="tabs" aria-label=${t("app.tabs")}>
        ${ROUTES.filter((route) => route.tab && known(route)).map((route) => this.item(route))}
        <button aria-haspopup="dialog" @click=${() => this.more()}>${t("app.more")}</button>
      </nav></div>`;
  }

  private skip = (event: Event): void => {
    event.preventDefault();
    this.querySelector<HTMLElement>("#main")?.focus();
  };

  private element(): unknown {
    if (!this.route) return nothing;
    const tag = unsafeStatic(this.route.tag);
    return staticHtml`<${tag}></${tag}>`;
  }

  private outdated(): TemplateResult {
    return html`<div class="page"><div class="notice"><h2>${t("app.updated")}</h2><div class="go">
      <button class="btn p" @click=${() => location.reload()}>${t("do.reload")}</button></div></div></div>`;
  }

  private banner(): unknown {
    if (gateway.state === "open") {
      return choice.elsewhere ? html`<div class="banner plain">${t("app.elsewhere", { host: new URL(choice.url).host })}
        <button class="btn q" @click=${back}>${t("app.elsewhere.back")}</button></div>` : nothing;
    }
    const waiting = outbox.waiting.length;
    return html`<div class="banner" role="status">${t("app.offline", { time: gateway.seenAt ? ago(gateway.seenAt) : "" })}
      ${waiting ? t("app.queued", { n: waiting }) : ""}</div>`;
  }

  private named(group: "agent" | "house", name: string): unknown {
    const items = this.group(group);
    return items.length ? html`<h2>${name}</h2>${items}` : nothing;
  }

  private group(group: string): unknown[] {
    return ROUTES.filter((route) => route.group === group && known(route)).map((route) => this.item(route));
  }

  private item(route: Route): TemplateResult {
    const path = route.path.replace(/\/:.*$/, "");
    const count = this.links.count(path);
    return html`<a href=${to(path)} aria-current=${this.route === route ? "page" : nothing}>${t(route.name)}
      ${count ? html`<b class=${path === "/inbox" ? "bad" : ""}><span aria-hidden="true">${count}</span><span class="unseen">${t("app.waiting", { n: count })}</span></b>` : nothing}</a>`;
  }

  private more(): void {
    const rest = ROUTES.filter((route) => route.group && known(route));
    void sheet(t("app.more"), (close) => html`<nav aria-label=${t("app.nav")} class="rows">${rest.map((route) => html`<p>
      <a href=${to(route.path.replace(/\/:.*$/, ""))} @click=${() => close()}>${t(route.name)}</a></p>`)}</nav>
      ${this.looks()}<div class="go"><button class="btn" @click=${() => close()}>${t("do.close")}</button></div>`);
  }

  private look(): void {
    void sheet(t("app.look"), (close) => html`${this.looks()}<div class="go"><button class="btn" @click=${() => close()}>${t("do.close")}</button></div>`);
  }

  private looks(): TemplateResult {
    const themes: Array<[Theme, string]> = [["system", t("theme.system")], ["light", t("theme.light")], ["dark", t("theme.dark")]];
    return html`<div class="field"><label for="theme">${t("theme.name")}</label>
        <select id="theme" @change=${(event: Event) => wear((event.target as HTMLSelectElement).value as Theme, true)}>
          ${themes.map(([id, name]) => html`<option value=${id} ?selected=${theme() === id}>${name}</option>`)}</select></div>
      <div class="field"><label for="language">${t("language.name")}</label>
        <select id="language" @change=${(event: Event) => void this.language((event.target as HTMLSelectElement).value as Language)}>
          ${Object.entries(LANGUAGES).map(([id, name]) => html`<option value=${id} lang=${id} ?selected=${chosen() === id}>${name}</option>`)}</select></div>`;
  }

  private async language(to: Language): Promise<void> {
    await speak(to, true);
    location.reload();
  }
}

/** Whether the gateway has what a page needs; until it has said what it has, every page counts as there. */
function known(route: Route): boolean {
  return !route.needs || !gateway.hello || gateway.knows(route.needs);
}

customElements.define("garra-app", App);
