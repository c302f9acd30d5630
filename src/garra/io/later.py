"""Modules whose body runs when somebody wants a name from it: of some packages we use a part, and not what their own
`__init__` brings along.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module, util
from threading import RLock
from types import ModuleType
from typing import Any


def later(modules: Mapping[str, Mapping[str, str]]) -> None:
    """Put these modules off, before anybody imports them. What is below a package can be imported all the same. With
    each stand the names which it has from other modules: these are loaded for them, and not the body. A module that is
    there already, or that nobody has, is left alone.
    """
    for name, lent in modules.items():
        spec = util.find_spec(name) if name not in sys.modules else None
        if spec is None or spec.loader is None:
            continue
        module = util.module_from_spec(spec)
        vars(module)["__getattr__"] = _Body(module, lent)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


class _Body:
    """Asked for a name that the module has not yet, runs the body."""

    def __init__(self, module: ModuleType, lent: Mapping[str, str]) -> None:
        self._module, self._lent, self._lock, self._run = module, lent, RLock(), False

    def __call__(self, name: str) -> Any:
        loader = self._module.__spec__.loader if self._module.__spec__ else None
        if name.startswith("__") or loader is None:  # what the import system looks for
            raise AttributeError(name)
        if name in self._lent and not self._run:
            return getattr(import_module(self._lent[name]), name)
        with self._lock:
            if not self._run:
                self._run = True
                loader.exec_module(self._module)
        if name not in vars(self._module):
            raise AttributeError(f"module {self._module.__name__!r} has no attribute {name!r}")
        return vars(self._module)[name]
