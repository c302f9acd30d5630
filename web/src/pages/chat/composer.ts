/** `<chat-composer>`: where a person writes, with pictures and files, and what answers. */
import { html, nothing } from "lit";
import { Part } from "../../app/page";
import type { Dict } from "../../lib/wire";
import { t } from "../../lib/words";
import { toast } from "../../ui/say";

export interface Draft {
  text: string;
  attachments: Dict[];
}

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const TEXT = /^(text\/|application\/(json|xml|javascript|toml|yaml|x-sh))|\.(md|txt|csv|tsv|log|json5?|ya?ml|toml|ini|py|ts|js|sh|sql|rs|go|c|h|cpp|java|rb|html|css)$/i;
const LARGEST_TEXT = 200_000;
const LARGEST_PICTURE = 6_000_000;

export class Composer extends Part {
  static override properties = {
    busy: { type: Boolean }, models: { attribute: false }, model: {}, agent: {}, permission: {}, queue: {},
  };
  declare busy: boolean;
  declare models: Array<{ ref: string; name: string }>;
  declare model: string;
  declare agent: string;
  declare permission: string;
  declare queue: string;
  private files: Array<{ name: string; mime: string; data: string }> = [];

  /** Write it as if a person had typed it. */
  focusText(): void {
    this.querySelector("textarea")?.focus();
  }

  override render() {
    return html`<form class="box" @submit=${this.send} @dragover=${(event: DragEvent) => event.preventDefault()} @drop=${this.dropped}>
      ${this.files.length ? html`<div class="files">${this.files.map((file, at) => html`<span class="pill">
        <img src=${`data:${file.mime};base64,${file.data}`} alt="">${file.name}
        <button type="button" class="btn q" aria-label=${t("compose.remove", { name: file.name })} @click=${() => this.leaveOut(at)}>×</button></span>`)}</div>` : nothing}
      <label class="unseen" for="words">${t("compose.label")}</label>
      <textarea id="words" rows="1" placeholder=${t("compose.label")} @input=${this.grow} @keydown=${this.typed} @paste=${this.pasted}></textarea>
      <div class="bar">
        <label class="btn q" for="attach"><span aria-hidden="true">+</span><span class="unseen">${t("compose.attach")}</span></label>
        <input class="unseen" id="attach" type="file" multiple @change=${this.picked}>
        <span class="pill">${this.agent}</span>${this.permission ? html`<span class="pill wideonly">${this.permission}</span>` : nothing}
        <span class="grow"></span>
        ${this.busy ? html`<label class="unseen" for="queue">${t("compose.queue")}</label>
          <select id="queue" class="pill wideonly" @change=${(event: Event) => (this.queue = (event.target as HTMLSelectElement).value)}>
            <option value="steer">${t("compose.steer")}</option><option value="followup">${t("compose.after")}</option></select>` : nothing}
        <label class="unseen" for="model">${t("compose.model")}</label>
        <select id="model" class="pill" @change=${this.chose}>${this.models.map((each) => html`<option value=${each.ref} ?selected=${each.ref === this.model}>${each.name}</option>`)}</select>
        ${this.busy ? html`<button type="button" class="btn" @click=${() => this.dispatchEvent(new CustomEvent("stop"))}>${t("do.stop")}</button>` : nothing}
        <button class="btn p">${t("do.send")}</button>
      </div></form>`;
  }

  private get area(): HTMLTextAreaElement {
    return this.querySelector("textarea")!;
  }

  private grow = (): void => {
    const area = this.area;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`;
  };

  private typed = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.send(event);
  };

  private send = (event: Event): void => {
    event.preventDefault();
    const text = this.area.value.trim();
    if (!text && !this.files.length) return;
    const attachments = this.files.map((file) => ({ type: "image", mimeType: file.mime, fileName: file.name, content: file.data }));
    // Emptied at once: the second click of two finds nothing to send.
    this.area.value = "";
    this.files = [];
    this.grow();
    this.requestUpdate();
    this.dispatchEvent(new CustomEvent<Draft>("say", { detail: { text, attachments } }));
  };

  private chose = (event: Event): void => {
    this.dispatchEvent(new CustomEvent("model", { detail: (event.target as HTMLSelectElement).value }));
  };

  private picked = (event: Event): void => {
    const input = event.target as HTMLInputElement;
    void this.take(input.files);
    input.value = "";
  };

  private pasted = (event: ClipboardEvent): void => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    void this.take(event.clipboardData.files);
  };

  private dropped = (event: DragEvent): void => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    void this.take(event.dataTransfer.files);
  };

  private leaveOut(at: number): void {
    this.files = this.files.filter((_, place) => place !== at);
    this.requestUpdate();
  }

  private async take(files: FileList | null): Promise<void> {
    for (const file of files ?? []) {
      if (PICTURES.includes(file.type) && file.size <= LARGEST_PICTURE) {
        this.files = [...this.files, { name: file.name, mime: file.type, data: await base64(file) }];
      } else if ((TEXT.test(file.type) || TEXT.test(file.name)) && file.size <= LARGEST_TEXT) {
        const fence = "```";
        this.area.value = `${this.area.value}\n${file.name}:\n${fence}\n${await file.text()}\n${fence}\n`.trimStart();
        this.grow();
      } else toast(t("compose.cannot", { name: file.name }));
    }
    this.requestUpdate();
  }
}

async function base64(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 32_768) text += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  return btoa(text);
}

customElements.define("chat-composer", Composer);
