"""The protocol as a document: complete, and enough to speak it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from garra.core import frames
from garra.gateway import table
from garra.gateway.method import ADMIN, Registry
from garra.gateway.schema import emit
from tests.gateway.house import Refused
from tests.gateway.standing import Standing, standing

DEPTH = 6


class Generated:
    """A client made from nothing but the document: it knows what parameters a method takes."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._random = random.Random(7)

    def request(self, method: str, *, full: bool) -> dict[str, Any]:
        params = self.value(self._document["methods"][method]["params"], full=full, depth=0)
        return {"type": "req", "id": "1", "method": method, "params": params or {}}

    def value(self, schema: dict[str, Any], *, full: bool, depth: int) -> Any:
        if "$ref" in schema:
            return self.value(self._document["$defs"][schema["$ref"].rsplit("/", 1)[-1]], full=full, depth=depth)
        if "anyOf" in schema:
            return self.value(self._random.choice(schema["anyOf"]), full=full, depth=depth)
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        return self._plain(schema, full=full, depth=depth)

    def _plain(self, schema: dict[str, Any], *, full: bool, depth: int) -> Any:
        kind = schema.get("type")
        if kind == "object":
            wanted = schema.get("properties", {}) if full and depth < DEPTH else {}
            names = {*schema.get("required", ()), *wanted}
            return {name: self.value(schema["properties"][name], full=full, depth=depth + 1) for name in sorted(names)}
        if kind == "array":
            filled = schema.get("items") and (full or schema.get("minItems", 0))
            return [self.value(schema["items"], full=full, depth=depth + 1)] if filled else []
        low = schema.get("minimum", 0)
        plain = {"string": "x" * max(1, schema.get("minLength", 1)), "integer": low, "number": low, "boolean": True}
        return plain.get(str(kind))


@pytest.mark.req("GW-03")
async def test_a_client_made_from_the_document_is_understood(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.http(accept="*/*") as http:
        document = (await http.get("/protocol.schema.json")).json()
        rows = {row.name: row for row in _registry(gateway)}
        assert set(document["methods"]) == set(rows)
        client = Generated(document)
        for name, row in rows.items():
            for full in (False, True):
                frame = frames.parse(msgspec.json.encode(client.request(name, full=full)))
                assert isinstance(frame, frames.Request)
                if row.params:
                    parsed = msgspec.json.decode(bytes(frame.params), type=row.params)
                    assert msgspec.json.decode(msgspec.json.encode(parsed), type=row.params) == parsed


def _registry(gateway: Standing) -> Registry:
    return table.of(gateway.gateway)


@pytest.mark.req("GW-04")
async def test_what_is_advertised_is_what_is_answered(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        registry = _registry(gateway)
        assert guest.hello["features"]["methods"] == list(registry.advertised)
        with pytest.raises(Refused, match=r"unknown method: no\.such"):
            await guest.call("no.such", {})
        assert (await guest.call("agents.list", {}))["defaultId"] == "main"


@pytest.mark.req("GW-18")
async def test_a_missing_right_is_named(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest(scopes=("operator.read",)) as guest:
        with pytest.raises(Refused) as caught:
            await guest.call("config.set", {"raw": "{}"})
        error = caught.value.error
        assert error["code"] == "FORBIDDEN"
        assert error["details"] == {"code": "MISSING_SCOPE", "missingScope": ADMIN, "requiredScopes": [ADMIN]}


def test_the_document_stands_on_its_own() -> None:
    document = emit(Registry())
    assert document["frames"]["request"]["$ref"] == "#/$defs/Request"
    assert document["protocol"] == 4
    assert "chat" in document["events"]
