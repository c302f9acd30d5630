"""A manifest says what a plugin is, or one line says what is wrong with it."""

from __future__ import annotations

import json

import pytest

from garra.sdk.manifest import Command, Manifest, ManifestInvalid, Part, parse


def own(text: str) -> Manifest:
    return parse("manifest.toml", text, "here/manifest.toml")


def test_own_form_with_one_part() -> None:
    manifest = own('id = "echo"\nkind = "channel"\nmodule = "channel:Echo"\nneeds = ["http"]\n')
    assert manifest.parts == (Part("echo", "channel:Echo"),)
    assert manifest.needs == ("http",)
    assert manifest.runtime == "python"


def test_own_form_with_several_parts() -> None:
    manifest = own(
        'id = "t"\nkind = "tool"\n[[tool]]\nname = "a"\nmodule = "a:A"\n[[tool]]\nname = "b"\nmodule = "b:B"\n'
    )
    assert [part.name for part in manifest.parts] == ["a", "b"]


def test_commands_are_declared_beside_whatever_else_it_brings() -> None:
    text = 'id = "a"\nkind = "plugin"\n[[command]]\nname = "greet"\nmodule = "greet:run"\nsummary = "says\\n hello"\n'
    assert own(text).commands == (Command("greet", "says hello", "greet:run"),)
    assert own(text + 'help = "more\\n"').commands[0].help == "more"
    assert own('id = "a"\nkind = "plugin"\n').commands == ()


def test_packages_of_others_are_named_by_extra_and_modules() -> None:
    manifest = own('id = "m"\nkind = "channel"\nmodule = "channel:M"\nextra = "matrix"\nimports = ["nio"]\n')
    assert (manifest.extra, manifest.imports) == ("matrix", ("nio",))
    assert own('id = "m"\nkind = "channel"\nmodule = "channel:M"\n').imports == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id = ", "not TOML"),
        ('id = "a"\nkind = "plugin"\ncommand = "greet"\n', "[[command]]"),
        ('id = "a"\nkind = "plugin"\n[[command]]\nname = "Greet Me"\n', "lower-case"),
        ('id = "a"\nkind = "plugin"\n[[command]]\nname = "greet"\nmodule = "greet"\n', "module:function"),
        ('id = "a"\nkind = "plugin"\n[[command]]\nname = "greet"\nmodule = "greet:run"\n', "summary"),
        ('kind = "tool"', "id is None"),
        ('id = "Bad Id"\nkind = "tool"', "id is 'Bad Id'"),
        ('id = "x"\nkind = "gadget"', "kind is 'gadget'"),
        ('id = "x"\nkind = "tool"\nmodule = "no colon"', "module is 'no colon'"),
        ('id = "x"\nkind = "tool"\nmodule = "os; x:y"', "write it as module:Name"),
        ('id = "x"\nkind = "tool"\n[[tool]]\nmodule = "a:A"', "has no name"),
        ('id = "x"\nkind = "tool"\napi = 2', "Update Garra"),
        ('id = "x"\nkind = "channel"\nextra = "a b"', "extra is 'a b'"),
        ('id = "x"\nkind = "channel"\nimports = "nio"', "imports is 'nio'"),
        ('id = "x"\nkind = "channel"\nimports = ["nio.crypto"]', "a list of top-level modules"),
    ],
)
def test_own_form_refused(text: str, says: str) -> None:
    with pytest.raises(ManifestInvalid) as refused:
        own(text)
    assert says in refused.value.message
    assert refused.value.message.startswith("here/manifest.toml")


@pytest.mark.req("EXT-02")
def test_the_originals_form() -> None:
    body = {"id": "coffer-session-context", "configSchema": {"type": "object", "additionalProperties": False}}
    manifest = parse("openclaw.plugin.json", json.dumps(body), "x")
    assert manifest.id == "coffer-session-context"
    assert manifest.runtime == "node"
    assert manifest.settings == body["configSchema"]


@pytest.mark.parametrize("text", ["{", "[]", '{"id": "x"}'])
def test_the_originals_form_refused(text: str) -> None:
    with pytest.raises(ManifestInvalid):
        parse("openclaw.plugin.json", text, "x")
