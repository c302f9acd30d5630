"""The document of approvals, as values."""

from __future__ import annotations

from typing import Any

import pytest

from garra.core import execrules
from garra.core.errors import UserError
from garra.core.execrules import ASK, SECURITY, Entry, Policy, Rules, misread

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "socket": {"path": "~/x.sock"},
    "defaults": {"security": "allowlist", "ask": "off", "askFallback": "deny"},
    "agents": {
        "*": {"allowlist": [{"pattern": "wc"}]},
        "main": {
            "ask": "on-miss",
            "allowlist": [
                {"id": "A", "pattern": "~/bin/rg", "argPattern": "^-n ", "source": "allow-always", "lastUsedAt": 5},
                {"pattern": "/usr/bin/*", "cwd": "/w", "expiresAt": 12.0},
                "ls",
            ],
        },
    },
}


def test_the_document_is_read_as_values() -> None:
    policy = execrules.parse(DOCUMENT).of("main")
    assert policy == Policy(
        "allowlist",
        "on-miss",
        "deny",
        (
            Entry("wc"),
            Entry("~/bin/rg", "^-n ", id="A", source="allow-always"),
            Entry("/usr/bin/*", cwd="/w", until_ms=12),
            Entry("ls"),
        ),
    )
    assert execrules.parse(DOCUMENT).of("other") == Policy("allowlist", "off", "deny", (Entry("wc"),))
    assert execrules.parse({}) == Rules()
    assert execrules.parse({"agents": {"default": {"ask": "off"}}}).of("main").ask == "off"


def test_an_unknown_word_is_the_closed_one() -> None:
    said = {"defaults": {"security": "open", "ask": "never", "askFallback": "yes"}}
    assert execrules.parse(said).of("main") == Policy("deny", "always", "deny")


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ([], "is no object"),
        ({"version": 2}, "version 2"),
        ({"agents": []}, "agents is no object"),
        ({"agents": {"main": 1}}, "agents.main is no object"),
        ({"agents": {"main": {"allowlist": "ls"}}}, "allowlist is no list"),
        ({"agents": {"main": {"allowlist": 5}}}, "allowlist is no list"),
        ({"agents": {"main": {"allowlist": [1]}}}, "allowlist.0 is no object"),
        ({"agents": {"main": {"allowlist": [{"pattern": 1}]}}}, "pattern is no text"),
        ({"agents": {"main": {"allowlist": [{"pattern": " "}]}}}, "pattern is missing"),
        ({"agents": {"main": {"allowlist": [{"pattern": "a", "expiresAt": "soon"}]}}}, "no number"),
        ({"agents": {"main": {"allowlist": [{"pattern": "a", "argPattern": "("}]}}}, "no regular expression"),
    ],
)
def test_what_is_no_such_document_is_named(document: Any, line: str) -> None:
    with pytest.raises(UserError, match=line):
        execrules.parse(document)


@pytest.mark.parametrize("security", SECURITY)
@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize("other_security", [*SECURITY, None])
@pytest.mark.parametrize("other_ask", [*ASK, None])
def test_of_two_sources_the_stricter_holds(security: Any, ask: Any, other_security: Any, other_ask: Any) -> None:
    one, other = Policy(security, ask), Policy(other_security, other_ask)
    both = execrules.stricter(one, other)
    assert both == execrules.stricter(other, one)
    places = [SECURITY.index(word) for word in (security, other_security) if word]
    assert both.security == SECURITY[min(places)]
    assert both.ask == ASK[min(ASK.index(word) for word in (ask, other_ask) if word)]


def test_nobody_says_nothing_and_entries_add_up() -> None:
    one, other = Policy(allowlist=(Entry("a"),)), Policy(allowlist=(Entry("b"),))
    assert execrules.stricter(one, other) == Policy(allowlist=(Entry("a"), Entry("b")))


def test_a_mode_is_two_words() -> None:
    assert execrules.moded("ask", None, None) == Policy("allowlist", "on-miss")
    assert execrules.moded("auto", None, None) == Policy("allowlist", "on-miss")
    assert execrules.moded("full", "deny", "always") == Policy("deny", "always")
    assert execrules.moded(None, "full", None) == Policy("full")
    assert execrules.moded("whatever", None, None) == Policy("deny", "off")


def test_an_entry_is_added_and_the_rest_is_kept() -> None:
    entry = Entry("/usr/bin/make", execrules.exact(["all"]), "/w", 99, "B", "allow-always")
    once = execrules.with_entry(DOCUMENT, "main", entry)
    assert once["socket"] == DOCUMENT["socket"]
    assert once["agents"]["main"]["allowlist"][:3] == DOCUMENT["agents"]["main"]["allowlist"]
    assert execrules.parse(once).of("main").allowlist[-1] == entry
    assert execrules.with_entry(once, "main", entry) == once
    assert execrules.with_entry({}, "x", Entry("ls")) == {
        "version": 1,
        "agents": {"x": {"allowlist": [{"pattern": "ls"}]}},
    }


@pytest.mark.parametrize(
    ("pattern", "arguments", "fit"),
    [
        ("", ["anything", "\n"], True),
        (r"^safe\.py$", ["safe.py"], True),
        (r"^safe\.py$", ["other.py"], False),
        (r"^safe\.py$", ["safe.py\n"], False),
        (r"^safe\.py$", ["safe.py", "x"], False),
        (r"^a[$\]x]$", ["a$"], True),
        (r"^a[$\]x]$", ["a]"], True),
        (r"^[[]x$", ["[x"], True),
        (r"^[a&&b||~~]$", ["&"], True),
        (r"^a|b&~-$", ["b&~-"], True),
        (r"^[a-c]$", ["b"], True),
        (r"^(?<one>a)\$$", ["a$"], True),
        (r"^(?<=x)?a$", ["a"], True),
        (r"^\d$", ["٣"], False),
        ("a", ["a" * 5000], False),
    ],
)
def test_arguments_fit_an_expression_of_javascript(pattern: str, arguments: list[str], *, fit: bool) -> None:
    assert execrules.fits(pattern, arguments) is fit


def test_exact_arguments_are_told_apart() -> None:
    assert execrules.fits(execrules.exact(["a b"]), ["a b"])
    assert not execrules.fits(execrules.exact(["a b"]), ["a", "b"])


@pytest.mark.parametrize("pattern", ["(", "[a--b]", "*", "a{99999999999999999999}"])
def test_what_is_no_expression_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        execrules.fits(pattern, ["a"])


@pytest.mark.parametrize("pattern", ["rm -rf", "", " ", "ls | sh", "/usr/bin/git -C /", "echo $HOME", "git status"])
def test_a_pattern_that_cannot_be_meant_says_so(pattern: str) -> None:
    assert misread(pattern)


@pytest.mark.parametrize("pattern", ["rg", "/usr/bin/*", "/opt/My App/run", "~/bin/**", "[ab]*"])
def test_a_pattern_that_names_a_program_may_be_meant(pattern: str) -> None:
    assert misread(pattern) == ""
