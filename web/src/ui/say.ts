/** What is said beside the page: a line that goes by itself, and words for those who hear the page. */
import { html, render } from "lit";
import { t } from "../lib/words";

interface Line {
  text: string;
  act?: { name: string; run: () => void } | undefined;
}

let lines: Line[] = [];
const SHOWN_MS = 6_000;

function region(id: string, kind: "polite" | "assertive"): HTMLElement {
  const found = document.getElementById(id);
  if (found) return found;
  const made = document.createElement("div");
  made.id = id;
  made.setAttribute("aria-live", kind);
  made.setAttribute("role", kind === "assertive" ? "alert" : "status");
  document.body.append(made);
  return made;
}

function shown(): void {
  const place = region("toasts", "polite");
  place.className = "toasts";
  render(
    lines.map((line) => html`<div class="toast"><span>${line.text}</span>
      ${line.act ? html`<button class="btn" @click=${() => { gone(line); line.act?.run(); }}>${line.act.name}</button>` : ""}
      <button class="btn q" aria-label=${t("do.close")} @click=${() => gone(line)}>×</button></div>`),
    place,
  );
}

function gone(line: Line): void {
  lines = lines.filter((each) => each !== line);
  shown();
}

/** A line at the edge for a while, with at most one thing to do. */
export function toast(text: string, act?: Line["act"]): void {
  const line: Line = { text, act };
  lines = [...lines.slice(-2), line];
  shown();
  setTimeout(() => gone(line), SHOWN_MS);
}

/** Say it once to those who hear the page: a new answer, a question. */
export function announce(text: string, urgent = false): void {
  const place = region(urgent ? "said-now" : "said", urgent ? "assertive" : "polite");
  place.className = "unseen";
  place.textContent = "";
  requestAnimationFrame(() => (place.textContent = text));
}
