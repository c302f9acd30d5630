/** What the agent remembers: its files, a search through them, and what it proposes to keep. */
import { html, nothing, type TemplateResult } from "lit";

import "./memory.css";
import { Loaded } from "../app/loaded";
import { Page } from "../app/page";
import { bytes, when } from "../lib/format";
import { gateway } from "../lib/house";
import { markdown } from "../lib/markdown";
import { Refused, type Dict } from "../lib/wire";
import { t, type Word } from "../lib/words";
import { tried } from "../ui/act";
import { changes, unified } from "../ui/changes";
import { sheet, sure } from "../ui/dialog";
import { empty, failed } from "../ui/parts";

/** What stands for the answer of a gateway that has no such method. */
function without(answer: Dict): (fault: unknown) => Dict {
  return (fault) => {
    if (fault instanceof Refused && fault.message.startsWith("unknown method")) return answer;
    throw fault;
  };
}

interface Told {
  files: Dict[];
  dreams: Dict[];
  status: Dict;
}

class Memory extends Page {
  private agent = "";
  private found: Dict[] | null = null;
  private fault: Refused | null = null;
  private told = new Loaded<Told>(this, () => this.read());

  private async read(): Promise<Told> {
    this.agent ||= String((await gateway.call("agents.list", {})).defaultId);
    const agentId = this.agent;
    const [top, diary, dreams, status] = await Promise.all([
      gateway.call("agents.workspace.list", { agentId }),
      gateway.call("agents.workspace.list", { agentId, path: "memory" }).catch(() => ({ entries: [] }) as Dict),
      gateway.call("memory.dreams", { agentId }).catch(without({ dreams: [] })),
      gateway.call("doctor.memory.status", { agentId }),
    ]);
    const own = (top.entries as Dict[]).filter((each) => ["MEMORY.md", "USER.md", "DREAMS.md"].includes(each.name));
    const days = (diary.entries as Dict[]).filter((each) => each.kind === "file" && each.name.endsWith(".md")).reverse();
    return { files: [...own, ...days], dreams: dreams.dreams as Dict[], status };
  }

  override render(): TemplateResult {
    return html`${this.head(t("page.memory"), t("memory.meta"))}<div class="page">${this.told.show((got) => html`
      <form class="seek" role="search" @submit=${(event: Event) => void this.seek(event)}>
        <label class="unseen" for="seek">${t("memory.search")}</label><input class="input" id="seek" name="seek" type="search" placeholder=${t("memory.search")}>
        <button class="btn">${t("do.search")}</button></form>
      ${this.fault ? failed(this.fault) : nothing}${this.results()}
      <h2 class="sect">${t("memory.dreams")}</h2>${got.dreams.length ? got.dreams.map((each) => this.dream(each)) : html`<p class="quiet">${t("memory.dreams.none")}</p>`}
      <h2 class="sect">${t("memory.files")}</h2>
      ${got.files.length ? html`<ul class="rows">${got.files.map((each) => html`<li class="card file"><button class="btn q" @click=${() => void this.open(String(each.path))}>${each.path}</button>
        <span class="quiet small num">${bytes(Number(each.size))} · ${when(Number(each.updatedAtMs))}</span></li>`)}</ul>` : empty(t("memory.none"), t("memory.none.words"))}`)}</div>`;
  }

  private async seek(event: Event): Promise<void> {
    event.preventDefault();
    const query = String(new FormData(event.target as HTMLFormElement).get("seek") ?? "").trim();
    this.fault = null;
    try {
      this.found = query ? ((await gateway.call("memory.search", { agentId: this.agent, query })).results as Dict[]) : null;
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      this.fault = fault;
    }
    this.change();
  }

  private results(): unknown {
    if (!this.found) return nothing;
    if (!this.found.length) return html`<div role="status">${empty(t("find.none"), t("find.none.words"))}</div>`;
    return html`<h2 class="sect">${t("memory.found")}</h2>${this.found.map((hit) => html`<article class="card"><p class="hit">${hit.snippet}</p>
      <div class="small quiet">${t("memory.from", { place: `${hit.path}${hit.startLine ? `:${hit.startLine}` : ""}` })}${hit.owner ? ` · ${hit.owner}` : ""}</div></article>`)}`;
  }

  private async open(path: string): Promise<void> {
    const got = await tried("agents.workspace.get", { agentId: this.agent, path });
    if (!got) return;
    const text = String(got.content ?? got.file?.content ?? "");
    await sheet(path, (close) => html`<div class="paper" tabindex="0" role="region" aria-label=${path}>${text.trim() ? markdown(text) : t("memory.blank")}</div>
      <div class="go"><button class="btn" @click=${() => close()}>${t("do.close")}</button></div>`);
  }

  private dream(each: Dict): TemplateResult {
    const lines = each.lines as Dict[];
    return html`<article class="card dream ${each.outside && each.state === "proposed" ? "warn" : ""}"><div><span class="tag">${t(`memory.is.${each.state}` as Word)}</span>
        <span class="quiet small num">${when(Number(each.at))}</span></div>
      <ul class="lines">${lines.map((line) => html`<li>${line.text}<div class="small quiet">${t("memory.from", { place: `${line.path}:${line.line}` })}${line.owner ? ` · ${line.owner}` : ""}${line.read ? ` · ${line.read}` : ""}</div></li>`)}</ul>
      <div class="go"><button class="btn" @click=${() => void this.decide(each)}>${t("memory.look")}</button></div></article>`;
  }

  /** The change that a proposal makes, or made, and what may be done with it. */
  private async decide(each: Dict): Promise<void> {
    const got = await tried("memory.dreams", { agentId: this.agent, id: each.id });
    if (!got) return;
    const step = await sheet<string>(t("memory.change"), (close) => html`${got.diff ? changes(t("memory.change"), unified(String(got.diff))) : html`<p>${t("memory.change.none")}</p>`}
      ${each.outside ? html`<p class="small">${t("memory.outside")}</p>` : nothing}
      <div class="go">${each.state === "proposed" ? html`<button class="btn p" @click=${() => close("apply")}>${t("memory.apply")}</button><button class="btn" @click=${() => close("refuse")}>${t("memory.refuse")}</button>` : nothing}
        ${each.state === "applied" ? html`<button class="btn" @click=${() => close("undo")}>${t("memory.undo")}</button>` : nothing}
        <button class="btn q" @click=${() => close()}>${t("do.close")}</button></div>`);
    if (!step) return;
    const outside = step === "apply" && each.outside;
    if (outside && !(await sure(t("memory.outside.sure"), t("memory.outside"), t("memory.apply")))) return;
    await tried("memory.dreams.decide", { agentId: this.agent, id: each.id, step, ...(outside ? { confirmed: true } : {}) }, t("memory.done"));
    void this.told.reload();
  }
}

customElements.define("page-memory", Memory);
