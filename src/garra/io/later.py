"""Modules whose body runs when somebody wants a name from it: of some packages we use a part, and not what their own
`__init__` brings along.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import util
from threading import RLock
from types import ModuleType
from typing import Any


def later(names: Iterable[str]) -> None:
    """Put these modules off, before anybody imports them. What is below a package can be imported all the same. A name
    that is loaded already, or that nobody has, is left alone.
    """
    for name in names:
        spec = util.find_spec(name) if name not in sys.modules else None
        if spec is None or spec.loader is None:
            continue
        module = util.module_from_spec(spec)
        vars(module)["__getattr__"] = _Body(module)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


class _Body:
    """Asked for a name that the module has not yet, runs the body."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._lock, self._run = module, RLock(), False

    def __call__(self, name: str) -> Any:
        loader = self._module.__spec__.loader if self._module.__spec__ else None
        if name.startswith("__") or loader is None:  # what the import system looks for
            raise AttributeError(name)
        with self._lock:
            if not self._run:
                self._run = True
                loader.exec_module(self._module)
        if name not in vars(self._module):
            raise AttributeError(f"module {self._module.__name__!r} has no attribute {name!r}")
        return vars(self._module)[name]
