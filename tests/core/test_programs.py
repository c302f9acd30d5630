"""Which programs can do anything, and which arguments leave the others harmless."""

from __future__ import annotations

import pytest

from garra.core import programs
from garra.core.programs import PROFILES, USUAL, Profile, can_do_anything, custom, fault, guarded


@pytest.mark.parametrize(
    "name",
    [
        "sh", "bash", "env", "xargs", "find", "sort", "git", "tar", "ssh", "awk", "sed", "tee", "flock", "nice", "sudo",
        "busybox", "python", "python3", "python3.11", "python3.11-config", "perl5.36", "node", "node20", "ruby3.1",
        "lua5.4", "php8.2", "gcc-12", "x86_64-linux-gnu-gcc-12", "clang-15", "/usr/bin/python3", "node.exe", "Python3",
        "pwsh", "powershell.exe", "git-upload-pack", "time", "timeout", "nohup", "make", "docker", "curl", "vim.tiny",
        "mawk", "gawk-5.1", "npm", "pip3", "uv", "systemd-run", "parallel", "script", "watch", "less", "garra",
        "systemd-cat", "systemd-inhibit", "dbus-run-session", "busctl", "uclampset", "sotruss", "scriptlive", "msgexec",
        "prove", "pydoc3.11", "lli-14", "jar", "chromium", "gdbtui", "zless", "groff", "rpcgen", "pg_virtualenv",
        "fzf", "direnv", "tig", "xvfb-run", "idle3", "javac", "lksh", "mke2fs", "supervisorctl", "coverage-3.11",
        "fuser", "ss", "localedef",
    ],
)  # fmt: skip
def test_they_are_known_by_any_name(name: str) -> None:
    assert can_do_anything(name)
    assert can_do_anything("harmless", name)


@pytest.mark.parametrize(
    "name", ["ls", "echo", "cat", "head", "wc", "grep", "rg", "jq", "md5sum", "base64", "uname", "mytool", "ls-2", ""]
)
def test_the_others_are_not(name: str) -> None:
    assert not can_do_anything(name)


FILTERS = {
    "cut -d: -f1,3": "",
    "cut -d : -f 1": "",
    "cut --delimiter=/ --fields=2": "",
    "cut --delimiter / -f2": "",
    "cut -sf2": "",
    "cut -f1 /etc/passwd": "one argument more",
    "cut -f": "lacks its value",
    "cut --fields": "lacks its value",
    "cut --output=x": "not among",
    "cut --delim=:": "not among",
    "cut --complement=1": "not among",
    "head -5": "",
    "head -n5 -q": "",
    "head -n 5 --": "",
    "head -5 file": "one argument more",
    "head -": "one argument more",
    "head -٥": "not among",
    "tail -n +2": "",
    "tail -f": "not among",
    "tail -nf": "",
    "tail --follow": "not among",
    "tail --retry": "not among",
    "tail -qF": "not among",
    "tr -d \\n": "",
    "tr a-z A-Z": "",
    "tr a b c": "one argument more",
    "wc -lw": "",
    "wc --files0-from=x": "not among",
    "wc -- -l": "one argument more",
    "uniq -c": "",
    "uniq -c in out": "one argument more",
    "grep -e x": "",
    "grep -ie x": "",
    "grep -iex": "",
    "grep --regexp=x -c": "",
    "grep x": "one argument more",
    "grep -c": "needs",
    "grep -rex": "not among",
    "grep -f x -e y": "not among",
    "grep -d recurse -e x": "not among",
    "sort -rnk2": "",
    "sort -o x": "not among",
    "sort -ro x": "not among",
    "sort -T /tmp": "not among",
    "sort --compress-program=sh": "not among",
    "sort -S 5": "not among",
}


@pytest.mark.parametrize("line", FILTERS)
def test_a_filter_touches_no_files(line: str) -> None:
    name, *arguments = line.split(" ")
    found = fault(PROFILES[name], arguments)
    assert FILTERS[line] in found
    assert bool(found) is bool(FILTERS[line])


def test_the_usual_ones_have_a_profile() -> None:
    assert set(USUAL) < set(PROFILES)
    assert not {"jq", "awk", "sed"} & set(PROFILES)


OWN = {"minPositional": 1, "maxPositional": 2, "allowedValueFlags": ["-n", "--limit", "-f"], "deniedFlags": ["-f"]}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a", ""),
        ("a b -n 5 --limit=6", ""),
        ("-n5 a", ""),
        ("", "needs 1"),
        ("a b c", "one argument more"),
        ("a -f x", "not among"),
        ("a -v", "not among"),
        ("a -n /etc/passwd", "looks like a path"),
        ("a -n../x", "looks like a path"),
        ("a --limit=~/x", "looks like a path"),
        ("./a", "looks like a path"),
        ("a -", "looks like a path"),
        ("a b\\c", "looks like a path"),
    ],
)
def test_a_profile_of_the_owner_s(line: str, why: str) -> None:
    found = fault(custom(OWN), line.split())
    assert why in found
    assert bool(found) is bool(why)


def test_an_empty_profile_allows_nothing() -> None:
    assert custom({}) == Profile(paths=False)
    assert custom({"allowedFlags": ["-v"]}).flags == {"-v"}
    assert fault(custom({}), ["x"])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("rg x .", ""),
        ("rg --pre sh x", "--pre"),
        ("rg --pre=sh x", "--pre"),
        ("rg --hostname x", "--hostname-bin"),
        ("rg -iz x", "-z"),
        ("rg -- --pre", ""),
        ("tree -L 2", ""),
        ("tree -o x", "-o"),
        ("shuf --out=x", "--output"),
        ("shuf -n1 -ox", "-o"),
        ("uniq in", ""),
        ("uniq - out", "more than 1"),
        ("uniq in -- out", "more than 1"),
        ("hostname", ""),
        ("hostname x", "more than 0"),
        ("date -s 12:00", "-s"),
        ("date --", ""),
        ("mytool --pre", ""),
    ],
)
def test_an_option_makes_it_more_than_a_reader(line: str, why: str) -> None:
    name, *arguments = line.split()
    found = guarded((name, f"/usr/bin/{name}"), arguments)
    assert why in found
    assert bool(found) is bool(why)


def test_what_the_shell_itself_does_is_named() -> None:
    assert {"cd", "eval", "exec", ".", "source", "export"} <= programs.BUILTINS
