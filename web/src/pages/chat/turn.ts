/** One turn of a conversation: what a person said, or an answer with its tools, thoughts and what it cost. */
import { html, nothing, type TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import { repeat } from "lit/directives/repeat.js";
import type { Block, Call, Item, Live, Spent } from "../../lib/chatlog";
import { count, lasted, money, when } from "../../lib/format";
import { markdown } from "../../lib/markdown";
import { gateway } from "../../lib/house";
import { t } from "../../lib/words";
import { to } from "../../app/router";
import "../../ui/code";

const SHORT = 20_000; // characters of a tool's output that a card shows

function callCard(call: Call): TemplateResult {
  const time = call.endedAt ? lasted(call.endedAt - call.startedAt) : call.state === "running" ? t("tool.running") : "";
  const output = call.output.length > SHORT ? `${call.output.slice(0, SHORT)}\n…` : call.output;
  return html`<details class="tool ${call.state}"><summary>
      <span>${call.name}</span><code>${call.about}</code>
      <span class="t">${call.state === "failed" ? html`<span class="failed">${t("tool.failed")}</span> ` : nothing}${time}</span></summary>
    ${call.args ? html`<garra-code .text=${call.args} .label=${t("tool.asked")} wrap></garra-code>` : nothing}
    ${output ? html`<garra-code .text=${output} .label=${t("tool.said")} wrap></garra-code>` : nothing}</details>`;
}

export function block(each: Block): unknown {
  if (each.kind === "call") return callCard(each.call);
  if (each.kind === "thinking") {
    return html`<details class="tool"><summary><span>${t("chat.thinking")}</span><code>${each.text.split("\n", 1)[0]}</code></summary>
      <div class="thought">${each.text}</div></details>`;
  }
  return html`<div class="text">${guard([each.text], () => markdown(each.text))}</div>`;
}

function foot(spent: Spent | null, runId: string): unknown {
  if (!spent) return nothing;
  const tokens = spent.cached
    ? t("chat.tokens.cached", { n: count(spent.tokens), cached: count(spent.cached) })
    : t("chat.tokens", { n: count(spent.tokens) });
  return html`<div class="foot num"><span>${spent.model}</span>${runId && gateway.knows("trace.get") ? html`<a href=${to(`/trace/${encodeURIComponent(runId)}`)} aria-label=${t("chat.time", { time: lasted(spent.ms) })}>${lasted(spent.ms)}</a>` : html`<span>${lasted(spent.ms)}</span>`}<span>${tokens}</span><span>${money(spent.cost)}</span></div>`;
}

function trouble(fault: string): unknown {
  if (!fault) return nothing;
  if (fault === "aborted") return html`<p class="small quiet">${t("chat.stopped")}</p>`;
  return html`<div class="notice bad" role="note">${fault}</div>`;
}

/** A stored turn. `whole` asks for all of one that is shown in part. */
export function turn(item: Item, whole: (id: string) => void): TemplateResult {
  if (item.kind === "note") return html`<p class="aside small quiet">${item.text}</p>`;
  const rest = item.cut ? html`<p><button class="btn" @click=${() => whole(item.id)}>${t("chat.whole")}</button></p>` : nothing;
  if (item.kind === "user") {
    return html`<article class="me" aria-label=${t("chat.you", { time: when(item.at) })} tabindex="-1">
      ${item.images.map((source) => html`<img src=${source} alt=${t("chat.picture")}>`)}<div class="said">${item.text}</div>${rest}</article>`;
  }
  return html`<article class="bot" aria-label=${t("chat.answer", { time: when(item.at) })} tabindex="-1">
    ${repeat(item.blocks, (each) => each.id, block)}${rest}${trouble(item.fault)}${foot(item.spent, item.runId)}</article>`;
}

/** The turn that goes on. Its words are read out when they are whole, not as they come. */
export function running(live: Live): TemplateResult {
  const quiet = !live.blocks.length && !live.met;
  return html`<article class="bot live" aria-label=${t("chat.running")} aria-busy=${live.ended ? "false" : "true"} tabindex="-1">
    ${live.met ? html`<div class="text">${markdown(live.met)}</div>` : nothing}
    ${repeat(live.blocks, (each) => each.id, block)}
    ${trouble(live.fault)}
    ${live.ended ? nothing : html`<p class="small quiet working">${quiet ? t("chat.waiting") : t("chat.working")}</p>`}</article>`;
}
