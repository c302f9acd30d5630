/** Markdown as Lit templates: tokens become elements of a fixed set, so no text ever becomes markup of its own. */
import { html, nothing, type TemplateResult } from "lit";
import MarkdownIt from "markdown-it";
import "../ui/code";

type Token = ReturnType<InstanceType<typeof MarkdownIt>["parse"]>[number];

const parser = new MarkdownIt("default", { html: false, linkify: true, breaks: true, typographer: false });
const LARGEST = 200_000; // characters; what is longer is shown as it is
const SAFE = /^(https?:|mailto:|tel:)/i;

interface Node {
  token: Token;
  children: Node[];
}

/** Flat tokens with their openings and closings, as a tree. */
function tree(tokens: readonly Token[]): Node[] {
  const top: Node[] = [];
  const open: Node[][] = [top];
  for (const token of tokens) {
    if (token.nesting === -1) {
      if (open.length > 1) open.pop();
      continue;
    }
    const node: Node = { token, children: token.children ? tree(token.children) : [] };
    open.at(-1)!.push(node);
    if (token.nesting === 1) open.push(node.children);
  }
  return top;
}

const kids = (node: Node): unknown => node.children.map(shown);
const aligned = (node: Node): string => (/right/.test(String(node.token.attrGet("style") ?? "")) ? "r" : "");

const TAGS: Record<string, (node: Node) => unknown> = {
  paragraph_open: (node) => (node.token.hidden ? kids(node) : html`<p>${kids(node)}</p>`),
  inline: kids,
  text: (node) => node.token.content,
  softbreak: () => html`<br>`,
  hardbreak: () => html`<br>`,
  strong_open: (node) => html`<strong>${kids(node)}</strong>`,
  em_open: (node) => html`<em>${kids(node)}</em>`,
  s_open: (node) => html`<s>${kids(node)}</s>`,
  code_inline: (node) => html`<code>${node.token.content}</code>`,
  link_open: (node) => link(node),
  image: (node) => picture(node),
  bullet_list_open: (node) => html`<ul>${kids(node)}</ul>`,
  ordered_list_open: (node) => html`<ol start=${node.token.attrGet("start") ?? 1}>${kids(node)}</ol>`,
  list_item_open: (node) => html`<li>${kids(node)}</li>`,
  blockquote_open: (node) => html`<blockquote>${kids(node)}</blockquote>`,
  hr: () => html`<hr>`,
  fence: (node) => html`<garra-code .text=${node.token.content.replace(/\n$/, "")} .label=${node.token.info.trim()}></garra-code>`,
  code_block: (node) => html`<garra-code .text=${node.token.content.replace(/\n$/, "")}></garra-code>`,
  heading_open: (node) => heading(node),
  table_open: (node) => html`<div class="wide" tabindex="0" role="region" aria-label="table"><table class="table">${kids(node)}</table></div>`,
  thead_open: (node) => html`<thead>${kids(node)}</thead>`,
  tbody_open: (node) => html`<tbody>${kids(node)}</tbody>`,
  tr_open: (node) => html`<tr>${kids(node)}</tr>`,
  th_open: (node) => (node.children.some((each) => each.token.content) ? html`<th scope="col" class=${aligned(node)}>${kids(node)}</th>` : html`<td></td>`),
  td_open: (node) => html`<td class=${aligned(node)}>${kids(node)}</td>`,
};

/** An answer stands below the page's own first heading, so its headings begin one lower. */
function heading(node: Node): TemplateResult {
  const level = Number(node.token.tag.slice(1));
  if (level <= 1) return html`<h2>${kids(node)}</h2>`;
  return level === 2 ? html`<h3>${kids(node)}</h3>` : html`<h4>${kids(node)}</h4>`;
}

function link(node: Node): unknown {
  const to = String(node.token.attrGet("href") ?? "");
  return SAFE.test(to) ? html`<a href=${to} target="_blank" rel="noopener noreferrer">${kids(node)}</a>` : kids(node);
}

/** A picture elsewhere is a link: loading it would tell its owner that the answer was read. */
function picture(node: Node): unknown {
  const to = String(node.token.attrGet("src") ?? "");
  const name = node.token.content || to;
  return SAFE.test(to) ? html`<a href=${to} target="_blank" rel="noopener noreferrer">${name}</a>` : name;
}

function shown(node: Node): unknown {
  const make = TAGS[node.token.type];
  return make ? make(node) : node.children.length ? kids(node) : node.token.content || nothing;
}

export function markdown(text: string): unknown {
  if (text.length > LARGEST) return html`<garra-code .text=${text} wrap></garra-code>`;
  return tree(parser.parse(text, {})).map(shown);
}
