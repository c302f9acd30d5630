"""Patterns of file names, none of which takes long."""

from __future__ import annotations

import pytest

from garra.core.glob import expand, matches


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "a.py"),
        ("*.py", "deep/down/a.py"),
        ("src/*.py", "src/a.py"),
        ("src/**/*.py", "src/a.py"),
        ("src/**/*.py", "src/x/y/a.py"),
        ("**/a", "a"),
        ("**", "a/b"),
        ("./src/*", "src/a"),
        ("a?c", "abc"),
        ("[ab].txt", "a.txt"),
        ("[a-c].txt", "b.txt"),
        ("[!a].txt", "b.txt"),
        ("[]].txt", "].txt"),
        ("*.{py,toml}", "x.toml"),
        ("{a,b}/{c,d}", "b/c"),
        ("{a}", "{a}"),
        ("a*b*c", "aXbYbc"),
        ("*", ""),
    ],
)
def test_fits(pattern: str, path: str) -> None:
    assert matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "a.pyc"),
        ("src/*.py", "src/x/a.py"),
        ("src/*.py", "a.py"),
        ("**/a/**/b", "b"),
        ("x/**/**", "y"),
        ("a?c", "ac"),
        ("[!a].txt", "a.txt"),
        ("[a-c].txt", "d.txt"),
        ("abc", "abcd"),
        ("", "a"),
        ("a/b", "a"),
    ],
)
def test_fits_not(pattern: str, path: str) -> None:
    assert not matches(pattern, path)


def test_no_pattern_takes_long() -> None:
    assert not matches("a*" * 40 + "b", "a" * 200)
    assert not matches("**/" * 60 + "b", "a/" * 200)
    assert len(expand("{a,b}" * 30)) == 64
