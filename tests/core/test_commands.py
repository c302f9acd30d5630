"""A shell line as programs with plain arguments, or not at all."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garra.core import commands
from garra.core.commands import LONGEST, MOST, Compound, Redirection, Simple, Unparsed, parse

BASH = shutil.which("bash") or "bash"


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("ls", ["ls"]),
        ("  ls -la  ", ["ls", "-la"]),
        ("ls \\\n -l", ["ls", "-l"]),
        ("ls ;", ["ls"]),
        ("ls\n\n", ["ls"]),
        ("./run 'a b' \"c d\" e\\ f x\"y\"'z'", ["./run", "a b", "c d", "e f", "xyz"]),
        ("\\ls", ["ls"]),
        ("'l'\"s\"", ["ls"]),
        ("echo '' \"\"", ["echo", "", ""]),
        ('echo "a\\$b \\`c\\` \\"d\\" \\\\ \\x"', ["echo", 'a$b `c` "d" \\ \\x']),
        ("echo '$x `y` *' \"* ? [a]\" \\* \\$x", ["echo", "$x `y` *", "* ? [a]", "*", "$x"]),
        (
            "echo a#b a~ x=y --k=v 12 +1 %2 ^a a,b @c a:b",
            ["echo", "a#b", "a~", "x=y", "--k=v", "12", "+1", "%2", "^a", "a,b", "@c", "a:b"],
        ),
        ('echo "hi!" "a != b" \'!!\'', ["echo", "hi!", "a != b", "!!"]),
        ("echo 'a\nb'", ["echo", "a\nb"]),
        ("echo é 漢字", ["echo", "é", "漢字"]),
        ("echo then do", ["echo", "then", "do"]),
    ],
)
def test_words_are_what_bash_hands_over(text: str, argv: list[str]) -> None:
    assert parse(text) == Simple(tuple(argv))


def test_several_programs() -> None:
    command = parse("a | b 2>&1 && c || d; e\nf >/dev/null")
    assert command == Compound(
        (
            Simple(("a",)),
            Simple(("b",), redirections=(Redirection(2, "&1"),)),
            Simple(("c",)),
            Simple(("d",)),
            Simple(("e",)),
            Simple(("f",), redirections=(Redirection(1, "/dev/null"),)),
        ),
        ("|", "&&", "||", ";", ";"),
    )
    assert isinstance(command, Compound)
    assert commands.parts(command) == command.parts
    assert commands.parts(Simple(("a",))) == (Simple(("a",)),)


def test_variables_and_redirections_are_told() -> None:
    assert parse("LC_ALL=C X='a b' sort -u") == Simple(("sort", "-u"), (("LC_ALL", "C"), ("X", "a b")))
    assert parse("cat </etc/hostname 2> /dev/null >&2") == Simple(
        ("cat",), (), (Redirection(0, "/etc/hostname", write=False), Redirection(2, "/dev/null"), Redirection(1, "&2"))
    )
    last = parse("ls | wc -l 2>/dev/null")
    assert last == Compound(
        (Simple(("ls",)), Simple(("wc", "-l"), redirections=(Redirection(2, "/dev/null"),))), ("|",)
    )


UNPARSED = {
    "": "empty",
    "  \n": "empty",
    "ls\r\ntouch x": "U+000D",
    "ls\0x": "U+0000",
    "ls\x0b": "U+000B",
    "ls\u00a0-l": "U+00A0",
    "ls \u202e": "U+202E",
    "ls \u200b": "U+200B",
    "ls \ud800": "U+D800",
    "x" * (LONGEST + 1): "longer",
    "é" * LONGEST + " $x": "longer|variable",
    "a;" * (MOST + 1): "more than",
    "ls $x": "variable",
    "ls ${x}": "variable",
    "ls ${Y:=$(x)}": "variable",
    "ls $(x)": "substitution",
    "ls `x`": "substitution",
    'ls "$(x)"': "substitution",
    'ls "$x"': "variable",
    'ls "`x`"': "substitution",
    "ls $((1))": "",
    "ls <(x)": "substitution",
    "ls >(x)": "",
    "cat <<EOF\n$(x)\nEOF": "here-document",
    "cat <<'EOF'\nx\nEOF": "here-document",
    "cat <<< x": "here-string",
    "ls > x": "redirection",
    "ls > 'x'": "redirection",
    "ls > /tmp/$x": "variable|substitution",
    "ls >> /tmp/x": "redirection",
    "ls >| /tmp/x": "redirection",
    "ls &> /tmp/x": "redirection",
    "ls 2>&3": "",
    "ls 2>&-": "",
    "> /tmp/x": "",
    "/tmp/x < ls > y": "redirection",
    "cat 0</x": "well-formed",
    "ls 2>&1 x": "",
    "(ls) 2>&1": "redirection",
    "ls *.c": "pattern",
    "ls a?": "pattern",
    "ls [ab]": "pattern",
    "ls a]": "pattern",
    "ls @(a|b)": "",
    "ls {a,b}": "braces",
    "ls a{1..3}": "braces",
    "ls ~": "tilde",
    "ls ~/x": "tilde",
    "ls --x=~/y": "tilde",
    "ls a:~/y": "tilde",
    "X=~ ls": "tilde",
    "X=$x ls": "variable",
    "X+=1 ls": "assignment",
    "X[0]=1 ls": "",
    "X=(1 2) ls": "",
    "X=1": "assignment",
    "ls !!": "history",
    "ls !x": "history",
    'ls "!x"': "history",
    "ls $'a'": "variable|string",
    'ls $"a"': "",
    'ls "a\\\nb"': "goes on",
    "l\\\ns": "well-formed",
    "ls a\\\nb": "well-formed",
    "ls &": "'&'",
    "ls & wc": "'&'",
    "ls |& wc": "",
    "ls;;wc": "",
    "ls |": "",
    "ls &&": "",
    "; ls": "",
    "ls && && wc": "",
    "! ls": "negation",
    "time ls": "the shell itself",
    "coproc ls": "the shell itself",
    "'if' x": "the shell itself",
    "''": "the shell itself",
    "'X=1' ls": "the shell itself",
    "if true; then ls; fi": "",
    "for x in a; do ls; done": "",
    "while ls; do ls; done": "",
    "case a in a) ls;; esac": "",
    "ls() { x; }; ls": "function",
    "function ls { x; }": "function",
    "{ ls; }": "group",
    "(ls)": "subshell",
    "((1))": "group",
    "[ -f x ]": "test",
    "[[ a ]]": "test",
    "export A=1": "declaration",
    "unset A": "declaration",
    "ls # x": "comment",
    "ls # \\\n; touch x": "well-formed",
    "# ls": "comment",
    "ls 'x": "well-formed",
    'ls "x': "well-formed",
    "ls \\": "",
    "a | { b; }": "group",
    "a && (b)": "subshell",
    "a <<X | b\nX": "",
}


@pytest.mark.parametrize("text", UNPARSED)
def test_what_is_no_list_of_literal_words_is_not_parsed(text: str) -> None:
    command = parse(text)
    assert isinstance(command, Unparsed), command
    assert command.reason
    assert any(word in command.reason for word in UNPARSED[text].split("|")), command.reason


def test_without_its_grammar_nothing_is_parsed() -> None:
    command = parse("ls", "no_such_package")
    assert isinstance(command, Unparsed)
    assert "grammar" in command.reason


def test_nesting_ends_somewhere() -> None:
    assert isinstance(parse("(" * 5_000 + "ls" + ")" * 5_000), Unparsed)
    assert isinstance(parse("a && " * 3_000 + "ls"), Unparsed)


def test_words_of_what_cannot_be_parsed_are_guessed() -> None:
    assert commands.words("for x in a b; do python3 './run.py' \"$x\" >out; done") == (
        "for", "x", "in", "a", "b", "do", "python3", "./run.py", "out", "done",
    )  # fmt: skip


PIECES = st.one_of(
    st.sampled_from(
        ["a", "-x", "'", '"', "\\", " ", "\n", ";", "|", "&&", "||", "&", "$x", "$(a)", "`a`", "*", "~", "#"]
    ),
    st.sampled_from(
        ["2>&1", ">/dev/null", "</dev/null", "!", "{", "}", "=", ":", "$'", '$"', "<<X", "é", "[", "]", "\t"]
    ),
    st.text(max_size=3),
)
LINES = st.lists(PIECES, max_size=12).map("".join)


@given(LINES)
@settings(max_examples=400, deadline=None)
def test_any_line_is_parsed_or_not_and_never_worse(text: str) -> None:
    command = parse(text)
    if isinstance(command, Compound):
        assert len(command.joints) == len(command.parts) - 1
    assert isinstance(command, Simple | Compound) or command.reason


QUOTED = st.lists(
    st.one_of(
        st.sampled_from(
            ["a", "'b c'", '"d e"', "\\ ", "\\$", '"\\$x"', "''", "#", "~", "=", "'\"'", '"\'"', "\\\\", '"\\\\"']
        ),
        st.text("ab$`\\\"'!#~{}*", max_size=4),
    ),
    min_size=1,
    max_size=5,
).map("".join)


@given(st.lists(QUOTED, max_size=4))
@settings(max_examples=60, deadline=None)
def test_words_are_bash_s_own(words: list[str]) -> None:
    text = " ".join(["printf '%s\\0'", *words])
    command = parse(text)
    if isinstance(command, Simple):
        shown = subprocess.run([BASH, "-c", text], capture_output=True, check=True, cwd="/").stdout.decode()
        assert list(command.argv[2:]) == (shown.split("\0")[:-1] if len(command.argv) > 2 else [])
