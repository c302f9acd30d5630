"""`garra gateway schema`: the JSON Schema of the wire protocol, as the running code has it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from garra.faces.cli import output, parsing


def run(arguments: Sequence[str]) -> int:
    parsing.parser("gateway schema", "Print the JSON Schema of the wire protocol.").parse_args(list(arguments))
    table = importlib.import_module("garra.gateway.table")  # every method: loaded only to print them
    output.say_json(table.document())
    return 0
