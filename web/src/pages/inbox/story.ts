/** One message in full: its words, its way station by station, and what can be done about it. */
import { html, nothing, type TemplateResult } from "lit";
import { clock, when } from "../../lib/format";
import { gateway } from "../../lib/house";
import type { Mail } from "../../lib/mail";
import { Refused, type Dict } from "../../lib/wire";
import { t } from "../../lib/words";
import { to } from "../../app/router";
import { sheet } from "../../ui/dialog";
import { toast } from "../../ui/say";

export async function act(method: "messages.retry" | "messages.drop", id: string): Promise<void> {
  try {
    await gateway.call(method, { id });
  } catch (fault) {
    if (!(fault instanceof Refused)) throw fault;
    toast(fault.message);
  }
}

export async function stop(mail: Mail): Promise<void> {
  try {
    await gateway.call("chat.abort", { sessionKey: mail.sessionKey, ...(mail.runId ? { runId: mail.runId } : {}) });
  } catch (fault) {
    if (!(fault instanceof Refused)) throw fault;
    toast(fault.message);
  }
}

function station(each: Dict): TemplateResult {
  return html`<li><span class="num">${clock(Number(each.at))}:${String(new Date(Number(each.at)).getSeconds()).padStart(2, "0")}</span>
    <span>${each.words}${each.detail ? html` <span class="quiet">${each.detail}</span>` : nothing}</span></li>`;
}

/** What a person can do with it; each of them closes the sheet. */
export function deeds(mail: Mail, done: () => void): TemplateResult {
  const after = (work: Promise<void>) => void work.then(done);
  return html`${mail.mend ? html`<button class="btn p" @click=${() => after(act("messages.retry", mail.mend))}>${mail.standing === "unsure" ? t("inbox.resend") : t("do.again")}</button>
      <button class="btn" @click=${() => after(act("messages.drop", mail.mend))}>${mail.standing === "unsure" ? t("inbox.there") : t("do.drop")}</button>` : nothing}
    ${mail.standing === "now" && mail.sessionKey ? html`<button class="btn" @click=${() => after(stop(mail))}>${t("do.stop")}</button>` : nothing}
    ${mail.sessionKey ? html`<a class="btn" href=${to(`/chat/${encodeURIComponent(mail.sessionKey)}`)} @click=${done}>${t("inbox.talk")}</a>` : nothing}
    ${mail.runId && gateway.knows("trace.get") ? html`<a class="btn q" href=${to(`/trace/${encodeURIComponent(mail.runId)}`)} @click=${done}>${t("inbox.time")}</a>` : nothing}`;
}

export async function open(mail: Mail, done: () => void): Promise<void> {
  try {
    const got = await gateway.call("messages.get", { id: mail.id });
    const answers = got.answers as Dict[];
    await sheet(t("inbox.of", { who: mail.who }), (close) => html`<p class="small quiet">${mail.channel}, ${mail.chat}, ${when(mail.at)}</p>
      <div class="whole">${got.message.text}</div>
      ${answers.map((answer) => html`<p class="small quiet">${t("inbox.answered")}</p><div class="whole">${answer.text}</div>`)}
      ${mail.reason ? html`<p>${mail.reason}</p>` : nothing}
      <ol class="stations">${(got.timeline as Dict[]).map(station)}</ol>
      <div class="go">${deeds(mail, () => { close(); done(); })}<button class="btn q" @click=${() => close()}>${t("do.close")}</button></div>`);
  } catch (fault) {
    if (!(fault instanceof Refused)) throw fault;
    toast(fault.message);
  }
}
