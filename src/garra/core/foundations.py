"""Which models Amazon Bedrock has, of its two lists: those called by their own id, and profiles that stand for some.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_ListFoundationModels.html, API_ListInferenceProfiles.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from garra.core.catalog import MOST

LISTS: Final = ("/foundation-models?byOutputModality=TEXT", "/inference-profiles?maxResults=1000")
"""What is asked for, below the address of the control plane."""
_INPUTS: Final = {"TEXT": "text", "IMAGE": "image"}


def control(address: str) -> str:
    """Where the lists are, by the address that models are called at."""
    return address.replace("://bedrock-runtime.", "://bedrock.", 1)


def rows(models: object, profiles: object) -> dict[str, dict[str, Any]]:
    """What `core.catalog` keeps of them: models that answer with words, bit by bit. A profile can what its models can;
    it comes first, since AWS hands its calls to whoever has room.
    """
    known = {str(each["modelId"]): each for each in _summaries(models, "modelSummaries", "modelId") if _talks(each)}
    found: dict[str, dict[str, Any]] = {}
    for each in _summaries(profiles, "inferenceProfileSummaries", "inferenceProfileId"):
        behind = [known[name] for name in _behind(each) if name in known]
        if behind and each.get("status", "ACTIVE") == "ACTIVE":
            found[str(each["inferenceProfileId"])] = _row(each.get("inferenceProfileName"), behind[0])
    for name, each in known.items():
        if "ON_DEMAND" in _texts(each.get("inferenceTypesSupported")):
            found.setdefault(name, _row(each.get("modelName"), each))
    return dict(list(found.items())[:MOST])


def _summaries(body: object, name: str, id_: str) -> Iterator[Mapping[str, Any]]:
    listed = body.get(name) if isinstance(body, Mapping) else None
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get(id_), str) and 0 < len(each[id_]) <= 200:
            yield each


def _talks(each: Mapping[str, Any]) -> bool:
    life = each.get("modelLifecycle")
    active = not isinstance(life, Mapping) or life.get("status", "ACTIVE") == "ACTIVE"
    return active and each.get("responseStreamingSupported") is True and "TEXT" in _texts(each.get("outputModalities"))


def _behind(profile: Mapping[str, Any]) -> Iterator[str]:
    """The ids of the models that a profile stands for: the ends of their names at AWS."""
    for model in _maps(profile.get("models")):
        yield str(model.get("modelArn", "")).rpartition("/")[2]


def _row(name: object, model: Mapping[str, Any]) -> dict[str, Any]:
    inputs = tuple(_INPUTS[each] for each in _INPUTS if each in _texts(model.get("inputModalities")))
    named = {"name": name} if isinstance(name, str) and name else {}
    return {**named, "input": inputs or ("text",)}


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _maps(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
