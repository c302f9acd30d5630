/** A change of a text, to be read before it is made. */
import { html, type TemplateResult } from "lit";
import "./changes.css";
import type { Change } from "../lib/diff";

const NEAR = 3; // lines that stay, shown around those that change

/** The lines of a change that is written as `diff -u` has it. */
export function unified(text: string): Change[] {
  return text.split("\n").filter((row) => row && !/^(---|\+\+\+) /.test(row)).map((row) => {
    const kind = row[0] === "+" || row[0] === "-" ? row[0] : " ";
    return { kind, text: row.startsWith("@@") ? "…" : row.slice(1) };
  });
}

export function changes(label: string, lines: readonly Change[]): TemplateResult {
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - NEAR), at + NEAR + 1).some((each) => each.kind !== " "));
  const shown = lines.flatMap((line, at) => near[at] ? [line] : near[at - 1] ? [{ kind: " " as const, text: "…" }] : []);
  return html`<pre class="changes" tabindex="0" role="region" aria-label=${label}>${shown.map((line) =>
    html`<span class=${line.kind === "+" ? "come" : line.kind === "-" ? "gone" : ""}>${line.kind} ${line.text}
</span>`)}</pre>`;
}
