from __future__ import annotations

import json

import pytest

from garra.core import failures
from garra.core.errors import Failure, FailureKind, Unavailable

K = FailureKind


def error(message: str, **more: object) -> str:
    return json.dumps({"error": {"message": message, **more}})


OVERFLOWS = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
    "Please reduce the length of the messages or completion.",
    "Input is too long for requested model.",
    "the request exceeds the available context size. try increasing the context size",
    "Invalid request: Your request exceeded model token limit: 131072",
]


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        *[(400, error(words), K.OVERFLOW) for words in OVERFLOWS],
        (400, error("forced bad request"), K.REFUSED),
        (400, error("credit balance is too low"), K.BILLING),
        (400, error("API key not valid. Please pass a valid API key."), K.AUTH),
        (400, error("blocked", code="content_filter"), K.FILTERED),
        (400, error("The model `gpt-x` does not exist"), K.NOT_FOUND),
        (401, error("Incorrect API key provided: sk-abcdefghijk"), K.AUTH),
        (402, "", K.BILLING),
        (403, error("Arrearage"), K.BILLING),
        (403, "<html>forbidden</html>", K.AUTH),
        (404, error("not found"), K.NOT_FOUND),
        (404, error("billing page not found"), K.NOT_FOUND),
        (405, "", K.NOT_FOUND),
        (408, "", K.TIMEOUT),
        (413, "", K.OVERFLOW),
        (418, "", K.REFUSED),
        (422, error("bad"), K.REFUSED),
        (429, error("forced"), K.RATE_LIMIT),
        (429, error("You exceeded your current quota, please check your plan and billing details"), K.BILLING),
        (500, error("oops"), K.SERVER),
        (500, error("overloaded"), K.OVERLOADED),
        (502, "<html>bad gateway</html>", K.SERVER),
        (503, error("no capacity"), K.OVERLOADED),
        (504, "", K.TIMEOUT),
        (529, error("busy", type="overloaded_error"), K.OVERLOADED),
        (0, error("rate limit reached"), K.RATE_LIMIT),
        (0, error("upstream said nothing of use"), K.SERVER),
    ],
)
def test_one_table_tells_kinds_apart(status: int, body: str, kind: FailureKind) -> None:
    found = failures.refused(status, body)
    assert found.kind is kind
    assert found.status == (status or None)


def test_a_line_has_advice_and_the_servers_words_but_no_key() -> None:
    found = failures.refused(401, error("Incorrect API key provided: sk-abc***xyz9."))
    assert found.message == "check the key (HTTP 401: Incorrect API key provided: [key]" + ")"
    assert failures.refused(502, "<html>" + "x" * 900).message == "the provider has a fault; try again later (HTTP 502)"
    assert "\n" not in failures.refused(500, "a\nb").message
    assert failures.line(K.UNKNOWN) == "the call failed"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('[{"error":{"message":"a"}}]', "a"),
        ("[]", ""),
        ('{"error":"b"}', "b"),
        ('{"message":"c"}', "c"),
        ('{"detail":[{"msg":"d"}]}', "d"),
        ('{"other":1}', ""),
        ("7", "7"),
        ("null", ""),
        ("plain", "plain"),
    ],
)
def test_the_usual_shapes_of_errors(body: str, said: str) -> None:
    assert failures.spoken(body)[0] == said


@pytest.mark.parametrize(
    ("headers", "body", "wait"),
    [
        ({"retry-after": "5"}, "", 5_000),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 250),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, "", None),
        ({}, '{"details":[{"retryDelay": "34.5s"}]}', 34_500),
        ({}, "Please try again in 1.5s", 1_500),
        ({}, "Please try again in 300ms.", 300),
        ({}, "no", None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], body: str, wait: int | None) -> None:
    assert failures.refused(429, body, headers).retry_after_ms == wait


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("timeout", K.TIMEOUT),
        ("cut", K.CUT),
        ("refused", K.REFUSED),
        ("limit", K.SERVER),
        ("connect", K.NETWORK),
        (None, K.NETWORK),
    ],
)
def test_what_the_door_says(kind: str | None, found: FailureKind) -> None:
    gone = Unavailable("no connection to x", details=None if kind is None else {"kind": kind})
    assert failures.gone(gone).kind is found
    assert "no connection to x" in failures.gone(gone).message


def test_of_names_the_model_once() -> None:
    once = failures.of(failures.lost(K.CUT), "p", "m/x")
    assert once.message.startswith("p/m/x: the connection broke")
    assert failures.of(once, "p", "m/x") == once
    assert (once.provider, once.model) == ("p", "m/x")


def test_a_line_is_given_the_time() -> None:
    asked = Failure(K.RATE_LIMIT, "too many requests; try again later or choose another model", retry_after_ms=29_500)
    assert failures.timed(asked).message == "too many requests; try again in 30 s or choose another model"
    assert failures.timed(Failure(K.SERVER, "it broke", retry_after_ms=600_000)).message == (
        "it broke (try again in 10 min)"
    )
    for known in (Failure(K.SERVER, "it broke"), Failure(K.SERVER, "again in 3 s", retry_after_ms=1)):
        assert failures.timed(known) == known
    assert failures.span(5 * 3_600_000) == "5 h"


def test_the_line_says_when_to_try_again() -> None:
    message = failures.refused(429, "slow down", {"retry-after": "29.5"}).message
    assert message == "too many requests; try again in 30 s or choose another model (HTTP 429: slow down)"
