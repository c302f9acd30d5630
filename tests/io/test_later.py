from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BODY = "import sys\nsys.stdout.write('body ')\nname = 'a name'\n"


def ran(folder: Path, code: str) -> str:
    """What a new process says that puts `pack` and `pack.low.deep` off."""
    package = folder / "pack"
    (package / "low").mkdir(parents=True)
    (package / "__init__.py").write_text(BODY)
    (package / "low" / "__init__.py").write_text("here = 1\n")
    (package / "low" / "deep.py").write_text(BODY)
    head = f"import sys\nsys.path.insert(0, {str(folder)!r})\nfrom garra.io.later import later\n"
    ended = subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, check=True)
    return ended.stdout


def test_a_body_runs_when_a_name_is_wanted(tmp_path: Path) -> None:
    code = (
        "later({'pack': {'here': 'pack.low'}, 'no_such_pack': {}, 'sys': {}})\nimport pack, pack.low\n"
        "from pack import here\nprint(here, end=' ')\nprint(pack.name, pack.name, hasattr(pack, 'more'))"
    )
    assert ran(tmp_path, code) == "1 body a name a name False\n"


def test_a_module_below_a_package(tmp_path: Path) -> None:
    code = (
        "import pack.low\nprint('|', end=' ')\nlater({'pack.low.deep': {}, 'pack': {}})\nfrom pack.low import deep\n"
        "import pack.low.deep\nprint('quiet', end=' ')\nfrom pack.low.deep import name\nprint(name)"
    )
    assert ran(tmp_path, code) == "body | quiet body a name\n"
