"""The site is made of the documents; every link of them leads somewhere, and nothing of it asks another machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from docs.make import site


def test_every_link_leads_somewhere() -> None:
    assert not site.faults(site.pages())


def test_the_site_is_whole(tmp_path: Path) -> None:
    number = site.build(tmp_path)
    made = sorted(tmp_path.rglob("*.html"))
    assert len(made) == number > 60
    for page in made:
        text = page.read_text()
        for address in re.findall(r'(?:href|src)="([^"]*)"', text):
            if not site.outside(address) and (path := address.partition("#")[0]):
                assert (page.parent / path).resolve().is_file(), f"{page.relative_to(tmp_path)}: {address}"
        assert "<script>" not in text
        assert not re.search(r'<(?:script|link|img)[^>]*(?:src|href)="[a-z]+:', text), "nothing comes from elsewhere"
        assert 'lang="en"' in text or 'lang="zh"' in text


def test_search_knows_every_heading(tmp_path: Path) -> None:
    site.build(tmp_path)
    text = (tmp_path / "passages.js").read_text()
    rows = json.loads(text.removeprefix("window.passages="))
    assert any(row["h"] == "gateway" and row["u"] == "docs/reference/settings.html#gateway" for row in rows)
    assert {row["p"] for row in rows} >= {page.title for page in site.pages().values()}


def test_a_link_to_nowhere_is_named(tmp_path: Path) -> None:
    page = site.read("README.md")
    token = next(each for each, _ in site.inlines(page) if each.attrGet("href"))
    token.attrSet("href", "docs/nowhere.md#here")
    assert "docs/nowhere.md#here does not exist" in "\n".join(site.faults({"README.md": page}))


@pytest.mark.parametrize(
    ("text", "anchor"), [("Beginning anew", "beginning-anew"), ("`tools.exec.mode`", "toolsexecmode")]
)
def test_anchors_are_githubs(text: str, anchor: str) -> None:
    assert site.slug(text.strip("`")) == anchor
