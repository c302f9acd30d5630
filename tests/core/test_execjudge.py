"""Whether a command may run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from garra.core import commands, execjudge, execrules
from garra.core.commands import Redirection, Simple, Unparsed, parse
from garra.core.execjudge import Allow, Ask, Bound, Case, Deny, Found, Judgement, SafeBins, Step, judge
from garra.core.execrules import ASK, SECURITY, Entry, Policy
from garra.core.programs import Profile

LIES: Final = (1, 2, 3, 4)
LINKS = {"awk": "/usr/bin/mawk", "mine": "/usr/bin/python3.11", "box": "/bin/busybox"}
NAMES = "ls echo cat head wc grep cut sort awk python3 git find rg touch busybox mine box sed tail uniq jq env"


def machine(*extra: Found) -> dict[str, Found]:
    there = {name: Found(f"/usr/bin/{name}", LINKS.get(name, f"/usr/bin/{name}"), LIES) for name in NAMES.split()}
    return {**there, **{found.path: found for found in extra}}


def case(*entries: Entry | str, security: Any = "allowlist", ask: Any = "on-miss", **more: Any) -> Case:
    listed = tuple(Entry(entry) if isinstance(entry, str) else entry for entry in entries)
    return Case(Policy(security, ask, None, listed), "/w", **{"found": machine(), "home": "/home/me", **more})


def judged(text: str, where: Case) -> Judgement:
    return judge(parse(text), where)


def reasons(text: str, where: Case) -> str:
    found = judged(text, where)
    return "; ".join(found.reasons) if isinstance(found, Ask) else "" if isinstance(found, Allow) else found.reason


def test_what_is_listed_runs_and_what_is_not_is_asked_for() -> None:
    where = case("ls", "/usr/bin/wc")
    assert judged("ls -la x", where) == Allow((Step("/usr/bin/ls", ("ls", "-la", "x"), LIES),))
    assert judged("ls 2>/dev/null | wc -l && LC_ALL=C ls", where) == Allow(
        (
            Step("/usr/bin/ls", ("ls",), LIES, (), (Redirection(2, "/dev/null"),), "|"),
            Step("/usr/bin/wc", ("wc", "-l"), LIES, (), (), "&&"),
            Step("/usr/bin/ls", ("ls",), LIES, (("LC_ALL", "C"),)),
        )
    )
    assert judged("ls; touch x", where) == Ask(
        ("/usr/bin/touch is not on the allowlist",),
        (Step("/usr/bin/ls", ("ls",), LIES, joint=";"), Step("/usr/bin/touch", ("touch", "x"), LIES)),
        ("allow-once", "allow-always", "deny"),
        (Entry("/usr/bin/touch", execrules.exact(["x"]), "/w", source="allow-always"),),
        "/usr/bin/touch with exactly these arguments, in /w, until you take it back",
    )


OUTCOMES: dict[tuple[str, str], tuple[type, type]] = {
    ("deny", "off"): (Deny, Deny),
    ("deny", "on-miss"): (Deny, Deny),
    ("deny", "always"): (Deny, Deny),
    ("allowlist", "off"): (Allow, Deny),
    ("allowlist", "on-miss"): (Allow, Ask),
    ("allowlist", "always"): (Ask, Ask),
    ("full", "off"): (Allow, Allow),
    ("full", "on-miss"): (Allow, Allow),
    ("full", "always"): (Ask, Ask),
}


@pytest.mark.req("TOOL-12")
@pytest.mark.parametrize("security", SECURITY)
@pytest.mark.parametrize("ask", ASK)
def test_nine_cells(security: Any, ask: Any) -> None:
    where = case("ls", security=security, ask=ask)
    assert (type(judged("ls", where)), type(judged("touch x", where))) == OUTCOMES[security, ask]


@pytest.mark.req("TOOL-12")
@pytest.mark.parametrize("first", OUTCOMES)
@pytest.mark.parametrize("second", OUTCOMES)
def test_of_two_sources_the_stricter_decides(first: tuple[Any, Any], second: tuple[Any, Any]) -> None:
    both = execrules.stricter(Policy(*first, allowlist=(Entry("ls"),)), Policy(*second))
    for text, at in (("ls", 0), ("touch x", 1)):
        got = type(judged(text, replace(case(), policy=both)))
        alone = [OUTCOMES[source][at] for source in (first, second)]
        assert (got is Allow) is (alone == [Allow, Allow])  # unasked only where both leave it unasked
        if "deny" in (first[0], second[0]):
            assert got is Deny


def test_said_nothing_is_the_closed_word() -> None:
    where = replace(case(), policy=Policy(allowlist=(Entry("ls"),)))
    assert isinstance(judged("ls", where), Allow)
    assert isinstance(judged("touch x", where), Ask)


def test_a_lasting_yes_is_offered_where_it_would_hold() -> None:
    for text, where in (
        ("ls $x", case("ls")),
        ("ls > /tmp/x", case("ls")),
        ("A=1 ls", case("ls")),
        ("cd /", case("ls")),
        ("nosuch", case("ls")),
        ("touch x", case("ls", ask="always")),
    ):
        found = judged(text, where)
        assert isinstance(found, Ask)
        assert (found.choices, found.entries, found.remembers) == (("allow-once", "deny"), (), "")
    asked = judged("ls", case("ls", ask="always"))
    assert isinstance(asked, Ask)
    assert asked.reasons == ("every command is asked for (ask always)",)


def test_what_was_remembered_holds_for_just_that() -> None:
    asked = judged("touch x; python3 a.py; touch x", case("ls"))
    assert isinstance(asked, Ask)
    assert asked.remembers == (
        "/usr/bin/touch, /usr/bin/python3 with exactly these arguments, in /w, until you take it back; "
        "what is in the files it then runs may have changed"
    )
    where = case(*asked.entries)
    assert isinstance(judged("touch x; python3 a.py; touch x", where), Allow)
    assert isinstance(judged("python3 a.py", where), Allow)
    assert reasons("touch y", where) == "/usr/bin/touch is allowed with other arguments only"
    assert reasons("touch x", replace(where, cwd="/other")) == "/usr/bin/touch is allowed in /w only"


def test_what_lies_in_the_folder_itself_may_change() -> None:
    found = {"./run": Found("/w/run", "/w/run", LIES)}
    asked = judged("./run", case(found=found))
    assert isinstance(asked, Ask)
    assert asked.remembers.startswith("/w/run with exactly these arguments, in /w, ")
    assert asked.remembers.endswith("may have changed")


def test_a_variable_of_the_call_makes_it_another_thing() -> None:
    where = case("ls")
    assert reasons("ls", replace(where, env=("LC_ALL", "NO_COLOR"))) == ""
    given = replace(where, env=("LC_ALL", "RIPGREP_CONFIG_PATH"))
    assert reasons("ls", given) == "it is given RIPGREP_CONFIG_PATH"
    asked = judged("ls; touch x", given)
    assert isinstance(asked, Ask)
    assert (asked.choices, asked.entries) == (("allow-once", "deny"), ())


def test_any_arguments_in_one_folder_for_an_hour() -> None:
    where = case(Entry("touch", cwd="/w", until_ms=3_600_000))
    assert reasons("touch x", where) == ""
    assert reasons("touch y z", where) == ""
    assert reasons("touch x", replace(where, cwd="/w/sub")) == "/usr/bin/touch is allowed in /w only"
    assert reasons("touch x", replace(where, now_ms=3_660_000)) == "what was allowed of /usr/bin/touch is over"


@pytest.mark.parametrize(
    ("pattern", "text", "allowed"),
    [
        ("ls", "ls", True),
        ("l?", "ls", True),
        ("*", "ls", True),
        ("*", "python3 x", False),
        ("/usr/bin/ls", "ls", True),
        ("/usr/bin/*", "ls", True),
        ("/usr/**", "ls", True),
        ("/usr/*", "ls", False),
        ("/usr/bin/*", "awk 1", False),
        ("/usr/bin/awk", "awk 1", False),
        ("/usr/bin/mawk", "awk 1", False),
        ("ls", "/usr/bin/ls", False),
        ("ls", "./ls", False),
        ("/w/ls", "./ls", True),
        ("./ls", "./ls", False),
        ("~/bin/tool", "/home/me/bin/tool", True),
        ("~/bin/*", "/home/me/bin/tool", True),
        ("~/bin/*", "/home/me/bin/python", False),
        ("mine", "mine", False),
        ("box", "box", True),
        ("busybox", "busybox ls", False),
        ("env", "env", False),
        ("rg", "rg x", True),
        ("rg", "rg --pre sh x", False),
        ("jq", "jq -n env", True),
        ("jq", "jq -f x", False),
    ],
)
def test_what_a_pattern_is_of(pattern: str, text: str, *, allowed: bool) -> None:
    extra = [Found("/home/me/bin/tool", "/home/me/bin/tool", LIES), Found("/home/me/bin/python", "/opt/py", LIES)]
    found = machine(*extra, Found("/usr/bin/ls", "/usr/bin/ls", LIES))
    found["./ls"] = Found("/w/ls", "/w/ls", LIES)
    assert isinstance(judged(text, case(pattern, found=found)), Allow) is allowed


@pytest.mark.parametrize(
    ("arguments", "text", "allowed"),
    [
        (r"^safe\.py$", "python3 safe.py", True),
        (r"^safe\.py$", "python3 other.py", False),
        (r"^safe.py$", "python3 safe.py", False),
        (r"^safe\.py", "python3 safe.py", False),
        (r"^a b$", "python3 a b", True),
        (r"^a b$", "python3 'a b'", False),
        ("^$", "python3", True),
        ("^", "python3", False),
        (r"^\d$", "python3 1", False),
        (r"^a\\b$", "python3 'a\\b'", True),
        ("^a\\\\$", "python3 'a\\'", True),
        (r"^-n ", "rg -n x", True),
        (r"^-n ", "rg -n --pre sh x", False),
    ],
)
def test_what_can_do_anything_needs_its_very_arguments(arguments: str, text: str, *, allowed: bool) -> None:
    where = case(Entry(text.split()[0], arguments))
    assert isinstance(judged(text, where), Allow) is allowed


def test_an_entry_that_does_not_cover_it_is_no_harm() -> None:
    assert reasons("ls", case(Entry("ls", "^-l$"), "ls")) == ""
    assert reasons("ls", case(Entry("ls", "^-l$"), "wc")) == "/usr/bin/ls is allowed with other arguments only"


def test_what_more_a_line_may_not_do() -> None:
    where = case("ls", "cat")
    assert reasons("LD_PRELOAD=x ls", where) == "it sets LD_PRELOAD"
    assert reasons("ls > /etc/x", where) == "it redirects to /etc/x"
    assert reasons("cat < /etc/x", where) == "it redirects from /etc/x"
    assert reasons("ls 2>&1 >/dev/null </dev/null", where) == ""
    assert reasons("cd /; eval x", where) == "cd is of the shell itself; eval is of the shell itself"
    assert reasons("ls $x", where) == "it is more than programs with plain arguments: a variable"


@pytest.mark.req("TOOL-16")
@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("wc -l", True),
        ("wc -l /etc/passwd", False),
        ("head -5 | tail -2 | cut -d: -f1", True),
        ("sort -u", False),
        ("python3 -c 1", False),
        ("/usr/bin/wc", False),
        ("sed s/a/b/", False),
    ],
)
def test_filters_run_without_an_entry(text: str, *, allowed: bool) -> None:
    assert isinstance(judged(text, case()), Allow) is allowed


@pytest.mark.req("TOOL-16")
def test_a_safe_bin_needs_a_hardened_profile() -> None:
    named = SafeBins(frozenset({"python3", "mytool", "sort", "jq", "sed", "env"}), profiles={})
    found = {**machine(), "mytool": Found("/usr/bin/mytool", "/usr/bin/mytool", LIES)}
    for text in ("python3", "mytool", "jq .", "sed p", "env"):
        assert isinstance(judged(text, case(safe=named, found=found)), Ask)
    assert isinstance(judged("sort -u", case(safe=named)), Allow)
    any_one = Profile(most=1)
    profiled = replace(named, profiles={"mytool": any_one, "python3": any_one, "jq": any_one, "env": any_one})
    assert isinstance(judged("mytool x", case(safe=profiled, found=found)), Allow)
    assert isinstance(judged("mytool x y", case(safe=profiled, found=found)), Ask)
    for text in ("python3 x", "jq x", "env x"):
        assert isinstance(judged(text, case(safe=profiled)), Ask)


def test_a_filter_lies_where_filters_lie() -> None:
    elsewhere = {"wc": Found("/opt/bin/wc", "/opt/bin/wc", LIES)}
    assert isinstance(judged("wc", case(found=elsewhere)), Ask)
    assert isinstance(judged("wc", case(found=elsewhere, safe=SafeBins(folders=("/opt/bin",)))), Allow)
    disguised = {"wc": Found("/usr/bin/wc", "/usr/bin/python3", LIES)}
    assert isinstance(judged("wc", case(found=disguised)), Ask)
    shared = {"wc": Found("/bin/wc", "/bin/busybox", LIES)}
    assert isinstance(judged("wc", case(found=shared)), Allow)


@pytest.mark.parametrize(
    ("security", "fallback", "text", "choice"),
    [
        ("allowlist", None, "ls", "deny"),
        ("allowlist", "deny", "ls", "deny"),
        ("allowlist", "allowlist", "ls", "allow-once"),
        ("allowlist", "allowlist", "touch x", "deny"),
        ("allowlist", "full", "touch x", "deny"),
        ("full", "full", "touch x", "allow-once"),
        ("full", "allowlist", "touch x", "deny"),
    ],
)
def test_when_nobody_answers(security: Any, fallback: Any, text: str, choice: str) -> None:
    where = case("ls")
    found = judged(
        text, replace(where, policy=replace(where.policy, security=security, ask="always", fallback=fallback))
    )
    assert isinstance(found, Ask)
    assert found.fallback == choice


def test_a_command_that_only_a_shell_can_run_has_no_plan() -> None:
    assert execjudge.planned(Unparsed("x"), case()) is None
    assert execjudge.planned(Simple(("cd", "/")), case()) is None
    assert execjudge.planned(Simple(("nosuch",)), case()) is None
    assert execjudge.planned(commands.parse("ls >/tmp/x"), case()) is None


BOUND = Bound(("ls",), "/w", (1, 2), "gateway", (("A", "1"),), (("ls", "/usr/bin/ls", LIES),), "s", "telegram:a:7")


@pytest.mark.parametrize(
    "change",
    [
        {"words": ("ls", "x")},
        {"words": ("l", "s")},
        {"cwd": "/v"},
        {"cwd_identity": (1, 3)},
        {"host": "sandbox"},
        {"env": ()},
        {"env": (("A", "2"),)},
        {"files": ()},
        {"files": (("ls", "/usr/bin/ls", (1, 2, 3, 5)),)},
        {"session": "t"},
        {"requester": ""},
        {"terminal": True},
    ],
)
def test_a_yes_holds_for_all_of_it(change: dict[str, Any]) -> None:
    assert replace(BOUND, **change).digest() != BOUND.digest()
    assert replace(BOUND).digest() == BOUND.digest()


def test_what_is_held_word_for_word_is_told_from_what_any_arguments_fit() -> None:
    exact = case(Entry("ls", r"^-la$"), Entry("cat", execrules.exact(["a"])), "wc")
    allowed = [judged(text, exact) for text in ("ls -la", "ls -la; cat a", "wc", "ls -la | wc")]
    assert [found.exact for found in allowed if isinstance(found, Allow)] == [True, True, False, False]
    full = judged("ls $(id)", case(security="full"))
    assert full == Allow(None, exact=False)
