from __future__ import annotations

import json

import pytest

from garra.config import schema, view
from garra.config.sections import Config, lookup
from garra.core.redact import SENTINEL
from tests.config.place import Installation

TEXT = """{
  // "sesame" opens
  gateway: { auth: { token: "sesame-1", mode: "token" } },
  models: { providers: {
    a: { baseUrl: "http://x", apiKey: "${KEY}", headers: { "x-own": "sesame-2" }, models: [] },
    b: { baseUrl: "http://y", apiKey: { source: "env", provider: "default", id: "KEY" }, models: [] } } },
  channels: { telegram: { botToken: 'sesame-3', name: "x" } },
  agents: { defaults: { contextTokens: 5 } },
}
"""


def test_what_is_shown_holds_no_secret(here: Installation) -> None:
    here.env["KEY"] = "sesame-4"
    found = here.load(TEXT)
    assert found.valid
    shown = view.snapshot(here.paths, found)
    assert '"sesame' not in json.dumps(shown).replace('\\"sesame\\" opens', "")
    assert "sesame-" not in json.dumps(shown)
    assert shown["parsed"]["gateway"]["auth"] == {"token": SENTINEL, "mode": "token"}
    assert shown["config"]["models"]["providers"]["a"]["apiKey"] == "${KEY}"
    assert shown["config"]["models"]["providers"]["a"]["headers"] == {"x-own": SENTINEL}
    assert shown["config"]["models"]["providers"]["b"]["apiKey"]["id"] == "KEY"
    assert shown["config"]["channels"]["telegram"] == {"botToken": SENTINEL, "name": "x"}
    assert "// " in shown["raw"]
    assert shown["raw"].count(SENTINEL) == 3
    assert (shown["hash"], shown["valid"], shown["exists"]) == (found.hash, True, True)


def test_a_broken_text_is_masked_too(here: Installation) -> None:
    found = here.load(TEXT + "}")
    shown = view.snapshot(here.paths, found)
    assert "sesame-1" not in shown["raw"]
    assert "sesame-3" not in shown["raw"]
    assert shown["issues"][0]["path"] == ""


@pytest.mark.parametrize(
    "text", ["{token: sesame-1, a: 1,", '{"token" "sesame-1"', "{token = sesame-1 }", '{apiKey: "sesame-1\n"b": }']
)
def test_a_secret_without_its_quotes_or_colon_is_masked(text: str) -> None:
    assert "sesame" not in view.text(text)


def test_what_comes_back_is_the_text_that_was_hidden(here: Installation) -> None:
    here.write(TEXT)
    here.writer.replace(view.text(TEXT).replace("contextTokens: 5", "contextTokens: 6"))
    assert here.text == TEXT.replace("contextTokens: 5", "contextTokens: 6")


def test_the_known_secrets_are_those_of_file_and_environment(here: Installation) -> None:
    here.env |= {"KEY": "sesame-4", "OPENAI_API_KEY": "sesame-5", "LANG": "C"}
    known = set(view.known_secrets(here.load(TEXT)))
    assert known == {"sesame-1", "sesame-2", "sesame-3", "sesame-4", "sesame-5"}


def test_allowed_values_and_dotted_paths_are_for_programs(here: Installation) -> None:
    found = here.load("{ models: { mode: 'x', providers: { y: { baseUrl: '', models: [{ id: 'a' }] } } } }")
    assert view.issues(found.issues) == [
        {
            "path": "models.mode",
            "message": 'Invalid input (allowed: "merge", "replace"), got: "x"',
            "allowedValues": ["merge", "replace"],
        },
        {"path": "models.providers.y.models.0.name", "message": "Invalid input: required, received nothing"},
    ]


def test_a_place_is_known_secret_free_or_closed() -> None:
    assert lookup.place(("gateway", "auth", "token")).secret
    assert lookup.place(("models", "providers", "x", "headers", "y")).secret
    assert lookup.place(("gateway", "bind")).closed == "loopback"
    assert lookup.place(("agents", "list", 0, "model", "primary")).known
    assert lookup.place(("models", "providers", "x", "models", 0, "id")).required
    assert lookup.place(("channels", "x", "anything")).free
    assert lookup.place(("models", "providers", "x", "params", "y")).free
    assert not lookup.place(("gateway", "nope")).known
    assert not lookup.place(("gateway", "port", "x")).known
    assert not lookup.place(("gateway", "trustedProxies", "x")).known


def test_the_schema_says_what_the_sections_say() -> None:
    found = schema.schema()
    assert "$ref" not in json.dumps(found)
    gateway = found["properties"]["gateway"]
    port = gateway["properties"]["port"]
    assert port.pop("description").startswith("The port of everything")
    assert port == {"default": 18789, "maximum": 65535, "minimum": 1, "title": "Port", "type": "integer"}
    assert gateway["properties"]["controlUi"]["properties"]["allowedOrigins"]["title"] == "Allowed origins"
    assert "listens" in gateway["description"]
    assert set(found["properties"]) == lookup.keys_of(Config)
    hints = schema.hints(found)
    assert hints["gateway.auth.token"] == {
        "label": "Token", "advanced": False, "sensitive": True, "help": "The shared token.",
    }  # fmt: skip
    assert hints["models.providers.*.models.[].id"]["advanced"]


def test_one_place_of_the_schema_can_be_looked_up() -> None:
    found = schema.lookup("models.providers.mine")
    assert found is not None
    assert {child["key"] for child in found["children"]} >= {"baseUrl", "apiKey", "models"}
    assert "properties" not in found["schema"]
    token = schema.lookup("gateway.auth.token")
    assert token is not None
    assert token["hint"] == {"sensitive": True}
    assert schema.lookup("agents.list[0].model") is not None
    assert schema.lookup("agents.list.[].id") is not None
    assert schema.lookup("gateway.nope.x") is None
    root = schema.lookup("")
    assert root is not None
    assert any(child["key"] == "gateway" and child["hasChildren"] for child in root["children"])
