"""Bedrock's lists, in the shape that AWS' reference gives them."""

from __future__ import annotations

from typing import Any

import pytest

from garra.core.foundations import control, rows


def model(name: str, **more: Any) -> dict[str, Any]:
    return {
        "modelArn": f"arn:aws:bedrock:us-east-1::foundation-model/{name}", "modelId": name, "modelName": name.upper(),
        "providerName": "P", "inputModalities": ["TEXT", "IMAGE"], "outputModalities": ["TEXT"],
        "responseStreamingSupported": True, "customizationsSupported": [], "inferenceTypesSupported": ["ON_DEMAND"],
        "modelLifecycle": {"status": "ACTIVE"}, **more,
    }  # fmt: skip


def profile(name: str, *models: str, **more: Any) -> dict[str, Any]:
    behind = [{"modelArn": f"arn:aws:bedrock:us-west-2::foundation-model/{each}"} for each in models]
    return {"inferenceProfileId": name, "inferenceProfileName": "US A", "status": "ACTIVE", "models": behind, **more}


MODELS = {"modelSummaries": [
    model("p.words"), model("p.by-profile", inferenceTypesSupported=["INFERENCE_PROFILE"], inputModalities=["TEXT"]),
    model("p.old", modelLifecycle={"status": "LEGACY"}), model("p.pictures", outputModalities=["IMAGE"]),
    model("p.at-once", responseStreamingSupported=False), model("p.bare", modelLifecycle=None, inputModalities=None),
    "odd", {"modelId": 5}, {"modelId": ""},
]}  # fmt: skip
PROFILES = {"inferenceProfileSummaries": [
    profile("us.p.by-profile", "p.by-profile"), profile("us.p.gone", "p.gone"),
    profile("us.p.off", "p.words", status="DELETING"), profile("us.p.unnamed", "p.words", inferenceProfileName=None),
    profile("us.p.odd", models="x"),
]}  # fmt: skip


def test_what_answers_with_words_bit_by_bit_is_listed_profiles_first() -> None:
    assert rows(MODELS, PROFILES) == {
        "us.p.by-profile": {"name": "US A", "input": ("text",)},
        "us.p.unnamed": {"input": ("text", "image")},
        "p.words": {"name": "P.WORDS", "input": ("text", "image")},
        "p.bare": {"name": "P.BARE", "input": ("text",)},
    }


@pytest.mark.parametrize("body", [None, [], {}, {"modelSummaries": "x"}])
def test_what_is_no_list_lists_nothing(body: object) -> None:
    assert rows(body, body) == {}


def test_the_lists_are_beside_the_models() -> None:
    assert control("https://bedrock-runtime.eu-central-1.amazonaws.com") == "https://bedrock.eu-central-1.amazonaws.com"
    assert control("http://127.0.0.1:1") == "http://127.0.0.1:1"
