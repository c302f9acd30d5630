"""Known secrets are found in whatever form a program gives them, whole or in pieces."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.blots import BLOT, NONE, Blots, Flow, blots, forms, weighty
from garra.core.messages import Assistant, Image, Text, Thinking, ToolCall, ToolResult, User

KEY = 'sk-live-9Fq/7+xY&z"A1b2C3d4'
PEM = "-----BEGIN KEY-----\nMIIEvAIBADANBgkqhkiG9w0BAQEFAASC\nabc\n-----END KEY-----\n"


@pytest.mark.parametrize(
    "shown",
    [
        KEY,
        json.dumps(KEY),
        quote(KEY),
        quote(KEY, safe=""),
        KEY.encode().hex(),
        KEY.encode().hex().upper(),
        *(base64.b64encode(b"x" * shift + KEY.encode() + b"tail").decode() for shift in range(3)),
        *(base64.urlsafe_b64encode(b"x" * shift + KEY.encode()).decode() for shift in range(3)),
    ],
)
def test_every_form_is_blotted_out(shown: str) -> None:
    found = blots([KEY]).text(f"before {shown} after")
    assert BLOT in found
    assert found.startswith("before ")
    assert found.endswith(" after")


@pytest.mark.parametrize("text", ["lm-studio", "none", "not needed", "sk1"])
def test_plain_words_and_short_texts_are_no_secrets_to_search_for(text: str) -> None:
    assert not weighty(text)
    assert blots([text]) == NONE
    assert blots([text]).text(f"I use {text} today.") == f"I use {text} today."


def test_a_long_word_is_one() -> None:
    assert weighty("correct horse battery staple")
    assert blots(["correct horse battery staple"]).text("it is correct horse battery staple!") == f"it is {BLOT}!"


def test_a_key_of_several_lines_is_found_line_by_line() -> None:
    found = blots([PEM])
    assert "MIIEvAIBADANBgkqhkiG9w0BAQEFAASC" not in found.text("> MIIEvAIBADANBgkqhkiG9w0BAQEFAASC\n")
    assert found.text(f"key: {PEM}") == f"key: {BLOT}\n"


def test_the_longer_of_two_goes_first() -> None:
    assert blots(["abcdefgh1", "abcdefgh1-longer"]).text("x abcdefgh1-longer y") == f"x {BLOT} y"


def test_what_holds_none_is_the_same_object() -> None:
    found = blots([KEY])
    value = {"a": ["x" * 20, 1, None, ("y",)], "b": {"c": "innocent words"}}
    said = Assistant((Text("nothing here"), Thinking("nor here"), Image("image/png", "AAAA")), 1, error="plain")
    assert found.value(value) is value
    assert found.message(said) is said
    assert NONE.message(said) is said
    data = b'{"a":"nothing at all in this"}'
    assert found.data(data) is data
    assert NONE.data(data) is data


def test_values_and_messages() -> None:
    found = blots([KEY])
    assert found.value({KEY: [KEY, (KEY, 2)], "n": 1}) == {BLOT: [BLOT, [BLOT, 2]], "n": 1}
    call = ToolCall("1", "exec", {"command": f"echo {KEY}"})
    said = Assistant((Text(KEY), Thinking(KEY, "s"), call, Image("image/png", "AA")), 1, error=f"bad {KEY}")
    clean = found.message(said)
    assert KEY not in repr(clean)
    assert clean.content[1] == Thinking(BLOT, "s")
    result = ToolResult("1", "exec", (Text(KEY),), 1, details={"aggregated": KEY})
    assert KEY not in repr(found.message(result))
    assert found.message(User((Text(KEY),), 1, {"k": KEY})) == User((Text(BLOT),), 1, {"k": BLOT})
    assert found.data(json.dumps({"a": KEY}).encode()) == b'{"a": "***"}'


def test_the_edge_of_a_growing_text() -> None:
    found = blots(["abcdefgh12345678"])
    assert found.open("nothing of it") == 0
    assert found.open("see abcdefgh") == 8
    assert found.open("see abcdefgh12345678") == 0


def test_one_that_ends_where_another_begins_waits_with_it() -> None:
    found = blots(["1234567890ab", "ab-1234567"])
    flow, shown = Flow(found).step("x 1234567890ab")
    assert shown == "x "
    _, shown = flow.step("!")
    assert shown == f"{BLOT}!"


def test_what_waited_is_told_at_the_end() -> None:
    flow, shown = Flow(blots(["abcdefgh12345678"])).step("so abc")
    assert (shown, flow.rest()) == ("so ", "abc")
    assert Flow(NONE).step("words") == (Flow(NONE, ""), "words")


SECRETS = ("Zq9-abcabc-1", "abcabc-1-tail9", "two words 77 x")


@given(
    st.lists(st.sampled_from([*SECRETS, "a", "abc", "abcabc-1", " ", "Zq9-", "two ", "words"]), max_size=8), st.data()
)
def test_pieces_never_show_what_the_whole_does_not(words: list[str], data: st.DataObject) -> None:
    found = blots(SECRETS)
    text = "".join(words)
    flow, out, at = Flow(found), "", 0
    while at < len(text):
        step = data.draw(st.integers(1, 6))
        flow, shown = flow.step(text[at : at + step])
        out, at = out + shown, at + step
    out += flow.rest()
    assert not [secret for secret in SECRETS if secret in out]
    if not any(secret in text for secret in SECRETS):
        assert out == text


def test_a_form_that_is_too_short_is_left_out() -> None:
    assert not any(len(form) < 8 for form in forms("A1b2C3d4"))
    assert isinstance(blots([]), Blots)


def test_many_are_found_as_few_are() -> None:
    many = [f"{number:04d}-Secret-{number * 7919:06x}" for number in range(40)]
    found = blots([KEY, *many])
    assert found.text(f'say "{many[3]}", then {many[39]}|{KEY} and go') == f'say "{BLOT}", then {BLOT}|{BLOT} and go'
    assert found.text("short words only") == "short words only"
    assert found.text("short words, and innocently longer ones") == "short words, and innocently longer ones"
