"""Pages that must agree: the index with the project, the Chinese pages with the English, figures with their results."""

from __future__ import annotations

import re

import pytest
from docs.make.page import DOCS, ROOT

from tests.docs.blocks import of

PAIRS = (("README.md", "README.zh.md"), ("docs/getting-started.md", "docs/zh/getting-started.md"))


@pytest.mark.req("IDX-01")
def test_every_path_of_the_index_exists() -> None:
    text = (DOCS / "INDEX.md").read_text()
    paths = re.findall(r"`([^`\s]+)`", text)
    assert len(paths) > 50
    assert not [path for path in paths if not (ROOT / path).exists()]


@pytest.mark.req("IDX-01")
def test_every_row_of_the_index_leads_somewhere() -> None:
    rows = [line for line in (DOCS / "INDEX.md").read_text().splitlines() if line.startswith("| ")][1:]
    assert not [row for row in rows[1:] if "`" not in row.split("|")[2]]


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_chinese_pages_keep_step(english: str, chinese: str) -> None:
    """The same headings, commands, code, rows and figures; only the words are others."""
    ours, theirs = ((ROOT / path).read_text() for path in (english, chinese))
    assert [block.code for block in of(english)] == [block.code for block in of(chinese)]
    assert levels(ours) == levels(theirs)
    assert figures(ours) == figures(theirs)
    assert codes(ours) == codes(theirs)
    assert ours.count("\n| ") == theirs.count("\n| ")
    assert ours.count("\n* ") == theirs.count("\n* ")
    assert images(ours) == images(theirs)


def levels(text: str) -> list[str]:
    return re.findall(r"^(#+) ", text, re.MULTILINE)


def figures(text: str) -> list[str]:
    """The numbers of the page's tables and prose, code aside."""
    bare = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    return sorted(re.findall(r"\d[\d.,]*\d|\d+", bare))


def codes(text: str) -> list[str]:
    return sorted(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text))


def images(text: str) -> list[str]:
    return [re.sub(r"^(\.\./)+", "", path) for path in re.findall(r"!\[[^]]*\]\(([^)]*)\)", text)]


def test_figures_of_the_comparison_are_measured() -> None:
    results = (ROOT / "bench" / "RESULTS.md").read_text().split("\n## ")[0]
    rows = re.findall(
        r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \| `\w+`: (.+) (\w+) \|$", (DOCS / "comparison.md").read_text(), re.M
    )
    assert len(rows) >= 12
    for told, *values, test, figure in rows:
        measured = re.search(rf"^\| {re.escape(test)} \| {figure} \| (.*?) \| (.*?) \| (.*?) \|", results, re.MULTILINE)
        assert measured, f"{told}: bench/RESULTS.md has no {test} {figure}"
        assert values == [value.split(" (")[0] for value in measured.groups()], told
