/** Which devices may come in, and which ask to. */
import { html, nothing, type TemplateResult } from "lit";

import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { ago, when } from "../lib/format";
import { gateway } from "../lib/house";
import type { Dict } from "../lib/wire";
import { t } from "../lib/words";
import { tried } from "../ui/act";
import { sheet, sure } from "../ui/dialog";
import { dot, empty } from "../ui/parts";

interface Told {
  pending: Dict[];
  paired: Dict[];
}

function name(device: Dict): string {
  return String(device.displayName ?? device.clientId ?? String(device.deviceId).slice(0, 12));
}

/** What a device may do, in the words of the protocol without their common beginning. */
function rights(device: Dict): string {
  return ((device.scopes ?? []) as string[]).map((each) => each.replace("operator.", "")).join(", ") || "–";
}

class Devices extends Page {
  private told = new Loaded<Told>(this, async () => (await gateway.call("device.pair.list")) as unknown as Told, {
    on: ["device.pair.requested", "device.pair.resolved", "presence"],
  });

  override render(): TemplateResult {
    return html`${this.head(t("page.devices"), t("devices.meta"))}<div class="page">${this.told.show((got) => html`
      ${got.pending.length ? html`<h2 class="sect">${t("devices.waiting")}</h2>${got.pending.map((each) => this.waiting(each))}` : nothing}
      <h2 class="sect">${t("devices.paired")}</h2>
      ${got.paired.length ? got.paired.map((each) => this.device(each)) : empty(t("devices.none"), t("devices.none.words"))}`)}</div>`;
  }

  private waiting(each: Dict): TemplateResult {
    const act = (method: string, done: string) => async () => {
      await tried(method, { requestId: each.requestId }, done);
      void this.told.reload();
    };
    return html`<article class="card warn"><b>${name(each)}</b> <span class="quiet small">${[each.platform, each.clientMode, ago(Number(each.ts))].filter(Boolean).join(" · ")}</span>
      <p class="small">${t("devices.asks", { role: each.role, rights: rights(each) })}</p>${each.isRepair ? html`<p class="small">${t("devices.repair")}</p>` : nothing}
      <div class="small quiet"><code>${String(each.deviceId).slice(0, 16)}</code></div>
      <div class="go"><button class="btn p" aria-label=${t("devices.let.of", { name: name(each) })} @click=${act("device.pair.approve", t("devices.let.done", { name: name(each) }))}>${t("devices.let")}</button>
        <button class="btn q" aria-label=${t("devices.refuse.of", { name: name(each) })} @click=${act("device.pair.reject", t("devices.refused"))}>${t("devices.refuse")}</button></div></article>`;
  }

  private device(each: Dict): TemplateResult {
    const seen = each.lastSeenAtMs ? t("devices.seen", { time: ago(Number(each.lastSeenAtMs)) }) : t("devices.unseen");
    return html`<article class="card"><div>${dot(each.connected ? "ok" : "off")} <b>${name(each)}</b>
        <span class="quiet small">${[each.platform, each.clientMode, each.connected ? t("devices.here") : seen].filter(Boolean).join(" · ")}</span></div>
      <div class="small quiet">${t("devices.may", { role: ((each.roles ?? []) as string[]).join(", ") || "–", rights: rights(each) })}</div>
      <div class="small quiet">${t("devices.since", { time: when(Number(each.approvedAtMs ?? each.createdAtMs)) })} · <code>${String(each.deviceId).slice(0, 16)}</code></div>
      <div class="go"><button class="btn" aria-label=${t("devices.rename.of", { name: name(each) })} @click=${() => void this.rename(each)}>${t("devices.rename")}</button>
        <button class="btn" aria-label=${t("devices.rotate.of", { name: name(each) })} @click=${() => void this.rotate(each)}>${t("devices.rotate")}</button>
        <button class="btn bad" aria-label=${t("devices.remove.of", { name: name(each) })} @click=${() => void this.expel(each)}>${t("devices.remove")}</button></div></article>`;
  }

  private async rename(each: Dict): Promise<void> {
    const text = await sheet<string>(t("devices.rename.of", { name: name(each) }), (close) => html`<form @submit=${(event: Event) => { event.preventDefault(); close(String(new FormData(event.target as HTMLFormElement).get("label"))); }}>
      <div class="field"><label for="label">${t("devices.name")}</label><input id="label" name="label" .value=${name(each)} maxlength="64" required autofocus></div>
      <div class="go"><button class="btn p">${t("devices.rename")}</button><button type="button" class="btn q" @click=${() => close()}>${t("do.cancel")}</button></div></form>`);
    if (!text?.trim()) return;
    await tried("device.pair.rename", { deviceId: each.deviceId, label: text.trim() });
    void this.told.reload();
  }

  private async rotate(each: Dict): Promise<void> {
    if (!(await sure(t("devices.rotate.of", { name: name(each) }), t("devices.rotate.words"), t("devices.rotate")))) return;
    for (const role of (each.roles ?? []) as string[]) await tried("device.token.rotate", { deviceId: each.deviceId, role }, t("devices.rotated"));
    void this.told.reload();
  }

  private async expel(each: Dict): Promise<void> {
    if (!(await sure(t("devices.remove.sure", { name: name(each) }), t("devices.remove.words"), t("devices.remove")))) return;
    await tried("device.pair.remove", { deviceId: each.deviceId }, t("devices.removed"));
    void this.told.reload();
  }
}

customElements.define("page-devices", Devices);
