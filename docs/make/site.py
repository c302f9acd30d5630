"""The documentation as a static site: `python -m docs.make.site [FOLDER]`. It needs no network to be made or read.

Each Markdown page of the navigation (`docs/nav.toml`, and what lies beside it) becomes a page; a link that leads nowhere,
a heading that does not exist end the build. Search is a list of all paragraphs in one file, read by the browser
when somebody searches first.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path, PurePosixPath
from string import Template
from typing import Any
from urllib.parse import unquote

from docs.make.page import DOCS, ROOT
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name

OUT = ROOT / "build" / "docs"
HERE = Path(__file__).parent
LEXERS = {"sh": "bash", "console": "console", "json5": "javascript", "json": "json", "toml": "toml", "python": "python",
          "html": "html", "css": "css"}  # fmt: skip
HOME = "README.md"
SHORT = {
    HOME: "Garra",
    "README.zh.md": "Garra 中文",
    "bench/RESULTS.md": "Measurements",
    "AGENTS.md": "Working on the code",
}
"""What the menu calls pages whose titles say too little beside others."""


class Broken(Exception):
    """The documents do not hold together; the message names each place, a line each."""


@dataclass(frozen=True)
class Heading:
    level: int
    text: str
    anchor: str


@dataclass(frozen=True)
class Page:
    """One document: `path` is where it lies in the project, `tokens` what it says."""

    path: str
    tokens: Sequence[Token]
    headings: tuple[Heading, ...]

    @property
    def title(self) -> str:
        return self.headings[0].text if self.headings else self.path

    @property
    def target(self) -> str:
        """Where the page lies on the site."""
        return "index.html" if self.path == HOME else str(PurePosixPath(self.path).with_suffix(".html"))


@cache
def parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True, "highlight": coloured}).enable(["table", "strikethrough"])


def coloured(code: str, lang: str, _attributes: str) -> str:
    name = LEXERS.get(lang)
    return highlight(code, get_lexer_by_name(name), HtmlFormatter(nowrap=True)) if name else ""


FOLDERS = {
    "concepts": "Concepts",
    "howto": "How to",
    "channels": "Channels",
    "tools": "Tools",
    "reference": "Reference",
}


@cache
def navigation() -> Mapping[str, Sequence[str]]:
    """By heading: the pages below it, as paths in the project; a page that nobody named stands below its folder's."""
    named: dict[str, list[str]] = tomllib.loads((DOCS / "nav.toml").read_text())
    known = {path for listed in named.values() for path in listed}
    for path in sorted(DOCS.rglob("*.md")):
        name = str(path.relative_to(ROOT))
        if name not in known:
            named[FOLDERS.get(path.parent.name, "More")].append(name)
    return named


def read(path: str) -> Page:
    """Parse one document. Each heading gets its anchor, as GitHub makes it."""
    tokens = parser().parse((ROOT / path).read_text())
    headings, taken = [], set[str]()
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            text = plain(tokens[at + 1])
            anchor = _free(slug(text), taken)
            token.attrSet("id", anchor)
            headings.append(Heading(int(token.tag[1]), text, anchor))
    return Page(path, tokens, tuple(headings))


def plain(token: Token) -> str:
    """The words of an inline token, without its marks."""
    return "".join(each.content for each in token.children or () if each.type in ("text", "code_inline")).strip()


def slug(text: str) -> str:
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def _free(anchor: str, taken: set[str]) -> str:
    """`anchor`, with a number where another heading has it."""
    name, number = anchor, 0
    while name in taken:
        number += 1
        name = f"{anchor}-{number}"
    taken.add(name)
    return name


def pages() -> dict[str, Page]:
    """Every page of the navigation, by its path. Raises Broken for one that is missing, or stands there twice."""
    named = [path for listed in navigation().values() for path in listed]
    faults = [f"docs/nav.toml: {path} does not exist" for path in named if not (ROOT / path).is_file()]
    faults += [f"docs/nav.toml: {path} stands there twice" for path in {*named} if named.count(path) > 1]
    if faults:
        raise Broken("\n".join(faults))
    return {path: read(path) for path in named}


def inlines(page: Page) -> Iterator[tuple[Token, int]]:
    """Every inline token with its line."""
    for token in page.tokens:
        if token.type == "inline":
            for child in token.children or ():
                yield child, (token.map or [0])[0] + 1


def outside(address: str) -> bool:
    return bool(re.match(r"[a-z][a-z0-9+.-]*:", address))


def aim(page: Page, address: str) -> tuple[str, str]:
    """What a link means: the path in the project (empty for this page), and the anchor."""
    path, _, anchor = unquote(address).partition("#")
    if not path:
        return page.path, anchor
    whole = PurePosixPath(page.path).parent / path
    parts: list[str] = []
    for part in whole.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts), anchor


def faults(known: Mapping[str, Page]) -> list[str]:
    """Links that lead nowhere, by page and line."""
    found = []
    for page in known.values():
        for token, line in inlines(page):
            address = str(token.attrGet("href") or token.attrGet("src") or "")
            if not address or outside(address):
                continue
            path, anchor = aim(page, address)
            if not (ROOT / path).is_file():
                found.append(f"{page.path}:{line}: {address} does not exist")
            elif anchor and path in known and anchor not in {each.anchor for each in known[path].headings}:
                found.append(f"{page.path}:{line}: {path} has no heading #{anchor}")
    return found


def relative(page: Page, target: str) -> str:
    return "../" * page.target.count("/") + target


def render(page: Page, known: Mapping[str, Page], out: Path) -> str:
    """A page's words as HTML; what it shows of the project besides pages is copied."""
    for token, _ in inlines(page):
        for name in ("href", "src"):
            address = token.attrGet(name)
            if not isinstance(address, str) or not address or outside(address):
                continue
            path, anchor = aim(page, address)
            if path not in known:
                (out / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / path, out / path)
            target = known[path].target if path in known else path
            token.attrSet(name, relative(page, target) + (f"#{anchor}" if anchor else ""))
    words = parser().renderer.render(page.tokens, parser().options, {})
    words = words.replace("<table>", '<div class="wide" tabindex="0"><table>').replace("</table>", "</table></div>")
    words = words.replace("<pre>", '<pre tabindex="0">').replace("<th></th>", "<td></td>")
    return re.sub(r"<!--.*?-->\n?", "", words, flags=re.DOTALL)


def menu(page: Page, known: Mapping[str, Page]) -> str:
    parts = []
    for heading, listed in navigation().items():
        links = "".join(
            f'<a href="{relative(page, known[path].target)}"{" aria-current=page" if path == page.path else ""}>'
            f"{escape(_short(known[path]))}</a>"
            for path in listed
        )
        opened = " open" if page.path in listed or heading == "Start" else ""
        parts.append(f"<details{opened}><summary>{escape(heading)}</summary>{links}</details>")
    return "".join(parts)


def _short(page: Page) -> str:
    return SHORT.get(page.path, page.title)


def contents(page: Page) -> str:
    """The headings of a page, where there are enough of them to need it."""
    second = [each for each in page.headings if each.level == 2]
    if len(second) < 3:
        return ""
    return "".join(f'<a href="#{each.anchor}">{escape(each.text)}</a>' for each in second)


def passages(page: Page) -> Iterator[dict[str, str]]:
    """What is searched of a page: the words below each heading."""
    heading, words = Heading(1, page.title, ""), list[str]()
    anchors = iter(page.headings)
    for at, token in enumerate(page.tokens):
        if token.type == "heading_open":
            if words:
                yield _passage(page, heading, words)
            heading, words = next(anchors), []
        elif token.type == "inline" and (at == 0 or page.tokens[at - 1].type != "heading_open"):
            words.append(plain(token))
        elif token.type == "fence":
            words.append(token.content)
    yield _passage(page, heading, words)


def _passage(page: Page, heading: Heading, words: Sequence[str]) -> dict[str, str]:
    text = re.sub(r"\s+", " ", " ".join(words))
    return {"p": page.title, "h": heading.text, "u": f"{page.target}#{heading.anchor}", "t": text}


def build(out: Path = OUT) -> int:
    """Make the site in `out`; the number of its pages. Raises Broken."""
    known = pages()
    if wrong := faults(known):
        raise Broken("\n".join(wrong))
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    frame = Template((HERE / "page.html").read_text())
    rows: list[dict[str, Any]] = [row for page in known.values() for row in passages(page)]
    for page in known.values():
        target = out / page.target
        target.parent.mkdir(parents=True, exist_ok=True)
        lang = "zh" if page.path.endswith(".zh.md") or "/zh/" in page.path else "en"
        target.write_text(
            frame.substitute(
                title=escape(page.title if page.path == HOME else f"{page.title} · Garra"), lang=lang,
                root="../" * page.target.count("/"), menu=menu(page, known), contents=contents(page),
                words=render(page, known, out), path=escape(page.path),
            )
        )  # fmt: skip
    style = (ROOT / "web" / "src" / "tokens.css").read_text() + (HERE / "style.css").read_text()
    (out / "style.css").write_text(style)
    shutil.copyfile(HERE / "search.js", out / "search.js")
    (out / "passages.js").write_text(f"window.passages={json.dumps(rows, ensure_ascii=False, separators=(',', ':'))}\n")
    return len(known)


def main() -> int:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    try:
        number = build(out)
    except Broken as fault:
        print(fault, file=sys.stderr)
        return 1
    print(f"{number} pages: {out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
