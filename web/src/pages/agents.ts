/** The agents of the house: what each is made of, what answers for it, and what it may use. */
import { html, nothing, type TemplateResult } from "lit";

import "./memory.css";
import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { to } from "../app/router";
import { diff } from "../lib/diff";
import { bytes, when } from "../lib/format";
import { gateway } from "../lib/house";
import type { Dict } from "../lib/wire";
import { t } from "../lib/words";
import { tried } from "../ui/act";
import { changes } from "../ui/changes";
import { sheet } from "../ui/dialog";

interface Told {
  agents: Dict[];
  id: string;
  mainKey: string;
  files: Dict[];
  groups: Dict[] | null;
}

class Agents extends Page {
  private told = new Loaded<Told>(this, () => this.read());

  override moved(): void {
    void this.told.reload();
  }

  private async read(): Promise<Told> {
    const list = await gateway.call("agents.list", {});
    const agents = list.agents as Dict[];
    const id = String(agents.find((each) => each.id === this.params.id)?.id ?? list.defaultId);
    const [files, tools] = await Promise.all([
      gateway.call("agents.files.list", { agentId: id }),
      gateway.call("tools.effective", { agentId: id, sessionKey: `agent:${id}:${list.mainKey}` }).catch(() => null),
    ]);
    return { agents, id, mainKey: list.mainKey, files: files.files as Dict[], groups: tools ? (tools.groups as Dict[]) : null };
  }

  override render(): TemplateResult {
    return html`${this.head(t("page.agents"), t("agents.meta"))}<div class="page">${this.told.show((got) => this.all(got))}</div>`;
  }

  private all(got: Told): TemplateResult {
    const agent = got.agents.find((each) => each.id === got.id)!;
    const facts: Array<[string, unknown]> = [
      [t("agents.model"), agent.model?.primary ?? "–"], [t("agents.permission"), agent.defaultPermissionMode ?? "–"], [t("agents.folder"), agent.workspace],
    ];
    return html`${got.agents.length > 1 ? html`<nav class="go" aria-label=${t("page.agents")}>${got.agents.map((each) => html`<a class="btn ${each.id === got.id ? "p" : ""}" aria-current=${each.id === got.id ? "page" : "false"} href=${to(`/agents/${encodeURIComponent(each.id)}`)}>${each.name ?? each.id}</a>`)}</nav>` : nothing}
      <h2 class="sect">${agent.name ?? agent.id}</h2>
      <div class="card"><dl class="keys facts">${facts.map(([name, value]) => html`<dt class="quiet">${name}</dt><dd>${value}</dd>`)}</dl>
        <div class="go"><a class="btn p" href=${to(`/chat/${encodeURIComponent(`agent:${agent.id}:${got.mainKey}`)}`)}>${t("agents.talk")}</a></div></div>
      <h2 class="sect">${t("agents.files")}</h2>
      <ul class="rows">${got.files.map((each) => html`<li class="card file"><button class="btn q" @click=${() => void this.edit(got.id, String(each.name))}>${each.name}</button>
        <span class="quiet small num">${each.missing ? t("agents.missing") : `${bytes(Number(each.size))} · ${when(Number(each.updatedAtMs))}`}</span></li>`)}</ul>
      <h2 class="sect">${t("agents.tools")}</h2>
      ${got.groups?.length ? got.groups.map((group) => html`<details class="card"><summary>${group.label} <span class="quiet num">${(group.tools as Dict[]).length}</span></summary>
        <ul class="lines small">${(group.tools as Dict[]).map((tool) => html`<li><b>${tool.label ?? tool.id}</b> <span class="quiet">${tool.description}</span></li>`)}</ul></details>`)
        : html`<p class="quiet">${t("agents.tools.none")}</p>`}`;
  }

  /** A file of the agent, changed only after the change was read, and only where nobody changed it meanwhile. */
  private async edit(agentId: string, name: string): Promise<void> {
    const got = await tried("agents.files.get", { agentId, name });
    if (!got) return;
    const before = String(got.file.content ?? "");
    let text: string | undefined = before;
    for (;;) {
      const shown: string = text;
      text = await sheet<string>(name, (close) => html`<form @submit=${(event: Event) => { event.preventDefault(); close(event.target instanceof HTMLFormElement ? event.target.querySelector("textarea")!.value : undefined); }}>
        <div class="field"><label for="file">${t("agents.text", { name })}</label><textarea id="file" rows="16" .value=${shown}></textarea></div>
        <div class="go"><button class="btn p">${t("agents.compare")}</button><button type="button" class="btn q" @click=${() => close()}>${t("do.cancel")}</button></div></form>`);
      if (text === undefined || text === before) return;
      const wanted: string = text;
      const step = await sheet<string>(t("agents.change", { name }), (close) => html`${changes(t("agents.change", { name }), diff(before, wanted))}
        <div class="go"><button class="btn p" @click=${() => close("save")}>${t("agents.save")}</button><button class="btn" @click=${() => close("back")}>${t("agents.back")}</button>
        <button class="btn q" @click=${() => close()}>${t("do.cancel")}</button></div>`);
      if (!step) return;
      if (step === "save" && (await tried("agents.files.set", { agentId, name, content: wanted, ...(got.file.hash ? { expectedHash: got.file.hash } : {}) }, t("agents.saved", { name })))) break;
    }
    void this.told.reload();
  }
}

customElements.define("page-agents", Agents);
