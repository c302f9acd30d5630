"""The table says where each method is without loading it; what it says is what the modules have."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from garra.gateway import methods, table
from garra.gateway.server import Gateway

NOBODY = cast(Gateway, SimpleNamespace(devices=None))


def modules() -> set[str]:
    (folder,) = methods.__path__
    return {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}


def test_every_module_stands_in_the_table() -> None:
    assert set(table.METHODS) == modules()


@pytest.mark.parametrize("module", sorted(table.METHODS))
def test_the_table_says_what_the_module_has(module: str) -> None:
    found = importlib.import_module(f"garra.gateway.methods.{module}")
    rows = found.rows(NOBODY) if hasattr(found, "rows") else found.METHODS
    assert " ".join(row.name for row in rows) == table.METHODS[module]
    assert {row.name for row in rows if not row.advertised} == {row.name for row in rows}.intersection(table.HIDDEN)


def test_no_name_stands_there_twice_and_none_is_made_up() -> None:
    registry = table.of(NOBODY)
    names = [name for listed in table.METHODS.values() for name in listed.split()]
    assert sorted(names) == sorted(set(names)) == sorted(row.name for row in registry)
    assert len(registry.rows) == len(names)
    assert set(names) >= table.HIDDEN
    assert set(registry.advertised) == {row.name for row in registry if row.advertised}


def test_a_module_is_loaded_with_the_first_call_of_one_of_its_methods() -> None:
    code = (
        "import sys\nfrom garra.gateway import table\n"
        "registry = table.of(None)\nassert 'usage.cost' in registry.advertised\n"
        "def there(): return sorted(name[22:] for name in sys.modules if name.startswith('garra.gateway.methods.'))\n"
        "print(there())\nregistry.rows['logs.tail']\nregistry.rows.get('no.such')\nprint(there())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n['logs']\n"
