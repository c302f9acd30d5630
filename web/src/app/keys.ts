/** Keys: `g` and a letter goes to a page, `?` shows them all; other keys are the page's. */
import { html } from "lit";
import { ROUTES } from "../routes";
import { t } from "../lib/words";
import { sheet } from "../ui/dialog";
import { go } from "./router";
import type { Page } from "./page";

const SOON_MS = 1_200;

export function typing(target: EventTarget | null): boolean {
  const at = target as HTMLElement | null;
  return at instanceof HTMLElement && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName));
}

export function keys(page: () => Page | null): void {
  let after = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.key !== "Escape" && typing(event.target)) return;
    if (after && event.timeStamp - after < SOON_MS) {
      after = 0;
      const route = ROUTES.find((each) => each.key === event.key);
      if (route) {
        event.preventDefault();
        go(route.path.replace(/\/:.*$/, ""));
        return;
      }
    }
    after = event.key === "g" ? event.timeStamp : 0;
    if (event.key === "?") {
      event.preventDefault();
      void help();
    } else if (page()?.key(event.key, event)) {
      event.preventDefault();
    } else if (event.key === "/") {
      const search = document.querySelector<HTMLInputElement>("input[type=search]");
      if (search) {
        event.preventDefault();
        search.focus();
      }
    } else if (event.key === "Escape" && typing(event.target)) {
      (event.target as HTMLElement).blur();
    }
  });
}

export function help(): Promise<unknown> {
  const rows: Array<[string, string]> = [
    ...ROUTES.filter((route) => route.key).map((route): [string, string] => [`g ${route.key}`, t(route.name)]),
    ["/", t("keys.search")], ["j k", t("keys.move")], ["Enter", t("keys.open")], ["a", t("keys.approve")],
    ["Esc", t("keys.stop")], ["?", t("keys.all")],
  ];
  return sheet(t("keys.title"), (close) => html`<dl class="keys">${rows.map(([key, does]) => html`<dt><kbd>${key}</kbd></dt><dd>${does}</dd>`)}</dl>
    <div class="go"><button class="btn" @click=${() => close()}>${t("do.close")}</button></div>`);
}
