/** Questions and sheets above the page. Escape closes them; the focus returns to where it was. */
import { html, nothing, render, type TemplateResult } from "lit";
import { t } from "../lib/words";

/** Show `body` until it calls `close`, or a person closes it. Resolves with what `close` was given. */
export function sheet<T>(title: string, body: (close: (value?: T) => void) => TemplateResult): Promise<T | undefined> {
  return new Promise((resolve) => {
    const dialog = document.createElement("dialog");
    let answer: T | undefined;
    const close = (value?: T) => {
      answer = value;
      dialog.close();
    };
    dialog.setAttribute("aria-label", title);
    render(html`<h2>${title}</h2>${body(close)}`, dialog);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    // A field of a search would take the key to empty itself.
    dialog.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.preventDefault();
      // The next key may come before the browser has taken the keys from a field that is not shown any more.
      (document.activeElement as HTMLElement | null)?.blur();
      dialog.close();
    });
    document.body.append(dialog);
    dialog.showModal();
    // What an element within renders comes a moment later, with the field that is to be written in.
    queueMicrotask(() => dialog.querySelector<HTMLElement>("[autofocus]")?.focus());
  });
}

/** Ask whether to do something that cannot be undone. */
export async function sure(title: string, words: unknown, act: string): Promise<boolean> {
  const said = await sheet<boolean>(title, (close) => html`<p>${words ?? nothing}</p><div class="go">
    <button class="btn p" @click=${() => close(true)}>${act}</button>
    <button class="btn q" @click=${() => close(false)}>${t("do.cancel")}</button></div>`);
  return said === true;
}
