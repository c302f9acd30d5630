/** What stands instead of the page while the gateway does not let it in: what is wanted, and how to give it. */
import { html, type TemplateResult } from "lit";
import { back } from "../lib/elsewhere";
import { accept, choice, gateway } from "../lib/house";
import { t } from "../lib/words";
import "../ui/code";

function secret(event: SubmitEvent): void {
  event.preventDefault();
  const form = event.target as HTMLFormElement;
  const text = String(new FormData(form).get("secret") ?? "").trim();
  if (text) gateway.enter(text);
}

function box(title: string, body: unknown): TemplateResult {
  return html`<main class="gate" id="main" tabindex="-1"><h1>${title}</h1>${body}</main>`;
}

function wanted(): TemplateResult {
  const wrong = /MISMATCH/.test(String(gateway.fault?.details.code ?? ""));
  return box(t("gate.token"), html`<p>${t("gate.token.words")}</p>
    <garra-code .text=${"garra config get gateway.auth.token"}></garra-code>
    <form @submit=${secret}>
      <div class="field"><label for="secret">${t("gate.token.label")}</label>
        <input id="secret" name="secret" type="password" autocomplete="current-password" required aria-describedby="secret-wrong">
        <span class="wrong" id="secret-wrong" role="alert">${wrong ? t("gate.token.wrong") : ""}</span></div>
      <button class="btn p">${t("gate.enter")}</button>
    </form>`);
}

function pairing(): TemplateResult {
  const id = String(gateway.fault?.details.requestId ?? "");
  return box(t("gate.pairing"), html`<p>${t("gate.pairing.words")}</p>
    <garra-code .text=${`garra devices approve ${id}`.trim()}></garra-code>
    <p class="small quiet">${t("gate.pairing.id", { id: String(gateway.fault?.details.deviceId ?? "").slice(0, 12) })}</p>
    <p role="status">${t("gate.pairing.wait")}</p>`);
}

/** A link asks this page to speak to another gateway: nothing is sent to anybody before a person says so. */
function elsewhere(): TemplateResult {
  return box(t("gate.elsewhere"), html`<p>${t("gate.elsewhere.words")}</p>
    <garra-code .text=${choice.proposed}></garra-code><p class="small quiet">${t("gate.elsewhere.kept")}</p>
    <div class="go"><button class="btn" @click=${accept}>${t("gate.elsewhere.go", { host: new URL(choice.proposed).host })}</button>
      <button class="btn p" @click=${back}>${t("gate.elsewhere.stay")}</button></div>`);
}

/** The gate for the state at hand; null when the page may be shown. */
export function gate(): TemplateResult | null {
  if (choice.proposed) return elsewhere();
  switch (gateway.state) {
    case "token":
      return wanted();
    case "pairing":
      return pairing();
    case "insecure":
      return box(t("gate.insecure"), html`<p>${t("gate.insecure.words")}</p>
        <garra-code .text=${`ssh -L 18789:127.0.0.1:18789 ${location.hostname}`}></garra-code>
        ${gateway.fault ? html`<p class="small quiet">${gateway.fault.message}</p>` : ""}`);
    case "refused":
      return box(t("gate.refused"), html`<p>${gateway.fault?.message ?? ""}</p>
        <button class="btn" @click=${() => location.reload()}>${t("do.again")}</button>`);
    default:
      return gateway.hello ? null : gateway.state === "offline"
        ? box(t("gate.offline"), html`<p>${t("gate.offline.words")}</p><garra-code .text=${"garra gateway run"}></garra-code><p role="status">${t("gate.offline.wait")}</p>`)
        : html`<main class="gate" id="main" aria-busy="true"></main>`;
  }
}
