"""How long logins rest."""

from __future__ import annotations

import pytest

from garra.core import cooldowns
from garra.core.cooldowns import Fault, Health, Rest, Rules
from garra.core.errors import Failure, FailureKind

K = FailureKind
S, H = 1_000, 3_600_000


def fault(kind: FailureKind, at: int, model: str = "m", wait: int | None = None, words: str = "x") -> Fault:
    return Fault(model, Failure(kind, words, retry_after_ms=wait), at, at)


def waits(kind: FailureKind, *moments: int, words: str = "x") -> list[int]:
    health, found = Health(), []
    for at in moments:
        health = cooldowns.failed(health, fault(kind, at, words=words))
        rest = cooldowns.rest(health, "m", at)
        assert rest is not None
        found.append(rest.until_ms - at)
    return found


@pytest.mark.req("MODEL-07")
def test_the_ladder() -> None:
    assert waits(K.RATE_LIMIT, 0, 10 * S, 20 * S, 30 * S) == [30 * S, 60 * S, 300 * S, 300 * S]


@pytest.mark.req("MODEL-08")
def test_no_credit() -> None:
    assert waits(K.BILLING, 0, H, 2 * H, 3 * H) == [5 * H, 10 * H, 20 * H, 24 * H]
    health = cooldowns.failed(Health(), fault(K.BILLING, 0), Rules(1.0, 2.0))
    assert health.whole == Rest("billing", 0, H)


def test_a_revoked_key() -> None:
    assert waits(K.AUTH, 0, S, 2 * S, 3 * S, words="this key was revoked") == [600 * S, 1_200 * S, 2_400 * S, H]


@pytest.mark.req("MODEL-10")
def test_the_end_of_a_rest_clears_the_count() -> None:
    assert waits(K.RATE_LIMIT, 0, 10 * S, 71 * S) == [30 * S, 60 * S, 30 * S]


@pytest.mark.req("MODEL-09")
def test_a_limit_rests_one_model_and_a_second_all() -> None:
    health = cooldowns.failed(Health(), fault(K.RATE_LIMIT, 0, "a"))
    assert cooldowns.rest(health, "a", 1) is not None
    assert cooldowns.rest(health, "b", 1) is None
    health = cooldowns.failed(health, fault(K.RATE_LIMIT, S, "b"))
    assert cooldowns.rest(health, "c", 2 * S) == Rest("rate_limit", S, 31 * S, firm=True)


def test_a_silence_rests_no_second_model() -> None:
    health = cooldowns.failed(Health(), fault(K.RATE_LIMIT, 0, "a"))
    health = cooldowns.failed(health, fault(K.TIMEOUT, S, "b"))
    assert cooldowns.rest(health, "c", 2 * S) is None
    health = cooldowns.failed(Health(), fault(K.TIMEOUT, 0, "a"))
    health = cooldowns.failed(health, fault(K.RATE_LIMIT, S, "b"))
    assert health.whole is None


def test_one_outage_counts_once() -> None:
    health = cooldowns.failed(Health(), fault(K.RATE_LIMIT, 10 * S))
    late = Fault("m", Failure(K.RATE_LIMIT, "x"), 9 * S, 11 * S)
    assert cooldowns.failed(health, late) == health
    broke = cooldowns.failed(Health(), fault(K.BILLING, 10 * S))
    assert cooldowns.failed(broke, Fault("m", Failure(K.BILLING, "x"), 9 * S, 11 * S)) == broke


def test_of_two_limited_models_an_older_outage_of_the_whole_stays() -> None:
    health = Health(0, Rest("rate_limit", 20 * S, 90 * S), {"a": Rest("rate_limit", 0, 90 * S)})
    after = cooldowns.failed(health, fault(K.RATE_LIMIT, 10 * S, "b"))
    assert after.whole == health.whole
    assert "b" in after.models


def test_the_servers_own_word_within_bounds() -> None:
    for asked, wait in ((5 * S, 5 * S), (0, S), (90 * H, H)):
        health = cooldowns.failed(Health(), fault(K.RATE_LIMIT, 0, wait=asked))
        assert health.models["m"].until_ms == wait


@pytest.mark.parametrize("kind", [K.REFUSED, K.CUT, K.SERVER, K.NETWORK, K.OVERFLOW, K.CANCELLED, K.FILTERED])
def test_what_rests_nobody(kind: FailureKind) -> None:
    assert cooldowns.failed(Health(), fault(kind, 0)) == Health()


def test_what_got_past_the_limit_ends_its_rest() -> None:
    silent = Rest("timeout", 0, 90 * S)
    health = Health(0, Rest("billing", 0, 90 * S), {"m": Rest("rate_limit", 0, 90 * S, firm=True), "o": silent})
    assert cooldowns.failed(health, fault(K.CUT, 1)) == Health(0, None, {"o": silent})
    soft = Health(0, None, {"m": silent})
    assert cooldowns.failed(soft, fault(K.REFUSED, 1)) is soft


def test_an_answer_makes_well() -> None:
    models = {"m": Rest("timeout", 0, 90 * S), "o": Rest("timeout", 0, 90 * S), "p": Rest("timeout", 0, 5)}
    health = cooldowns.answered(Health(0, Rest("auth", 0, 90 * S), models), "m", 10)
    assert health == Health(10, None, {"o": Rest("timeout", 0, 90 * S)})


def test_which_rests_are_closed() -> None:
    assert cooldowns.closed(Rest("rate_limit", 0, 1, firm=True))
    assert cooldowns.closed(Rest("billing", 0, 1))
    assert not cooldowns.closed(Rest("rate_limit", 0, 1))
    assert not cooldowns.closed(Rest("timeout", 0, 1))
    assert not cooldowns.closed(Rest("auth", 0, 1))
    assert cooldowns.closed(Rest("auth", 0, 1, 2))


@pytest.mark.req("MODEL-16")
def test_one_probe_in_half_a_minute() -> None:
    assert cooldowns.may_probe(None, 0)
    assert not cooldowns.may_probe(0, 29_999)
    assert cooldowns.may_probe(0, 30_000)


def test_the_longest_rest_holds() -> None:
    health = Health(0, Rest("auth", 0, 5), {"m": Rest("timeout", 0, 9)})
    assert cooldowns.rest(health, "m", 1) == Rest("timeout", 0, 9)
    assert cooldowns.rest(health, "m", 9) is None


def test_stored_and_read() -> None:
    health = Health(7, Rest("auth", 0, 5, firm=True), {"m": Rest("timeout", 0, 9)})
    assert cooldowns.health_from(cooldowns.health_json(health)) == health
    assert cooldowns.health_from(cooldowns.health_json(Health())) == Health()
    assert cooldowns.health_from("?") == Health()
    assert cooldowns.health_from({"lastUsed": "x", "models": {"m": 1, "n": {"reason": 1}}}) == Health()
