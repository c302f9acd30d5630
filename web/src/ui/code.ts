/** `<garra-code>`: a block of text as it is, with a button that copies it. */
import { html } from "lit";
import { Part } from "../app/page";
import { t } from "../lib/words";

export class Code extends Part {
  static override properties = { text: {}, wrap: { type: Boolean }, label: {} };
  declare text: string;
  declare wrap: boolean;
  declare label: string;
  private copied = false;

  override render() {
    return html`<div class="codebox"><pre class=${this.wrap ? "wrap" : ""} tabindex="0" role="region" aria-label=${this.label || t("code.label")}><code>${this.text}</code></pre>
      <button class="btn" @click=${this.copy}>${this.copied ? t("do.copied") : t("do.copy")}</button></div>`;
  }

  private copy = async (): Promise<void> => {
    await copyText(this.text);
    this.copied = true;
    this.requestUpdate();
    setTimeout(() => {
      this.copied = false;
      this.requestUpdate();
    }, 1500);
  };
}

/** Put text on the clipboard, also where the page may not by the newer way. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

customElements.define("garra-code", Code);
