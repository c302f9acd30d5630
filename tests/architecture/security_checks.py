"""Makes docs/reference/security-checks.md of the audit's catalog: `python -m tests.architecture.security_checks`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from garra.checks.security.finding import Kind, catalog
from tests.architecture.caps import ROOT

PAGE = ROOT / "docs" / "reference" / "security-checks.md"
HEAD = """\
# What the security audit looks for

```sh
garra security audit            # judge configuration, files, channels, tools and plugins
garra security audit --deep     # also ask the running gateway and read the code of plugins and skills
garra security audit --fix      # close open groups, folders and files; nothing else is changed
```

How to read it, and what `--fix` does and never does: [security](../concepts/security.md). This page is made from the
catalog of the checks. A severity like `warn/critical` is the first on this machine alone, the second where the gateway
can be reached from others, or as the finding says. `<channel>` stands for a channel's name, such as `telegram`.
"""


def page() -> str:
    return "\n".join((HEAD, *(line for part in _parts() for line in part)))


def _parts() -> Iterator[list[str]]:
    for domain, kinds in groupby(catalog().values(), key=lambda kind: kind.id.split(".")[0]):
        yield [f"## {domain}", "", *(line for kind in kinds for line in _kind(kind))]


def _kind(kind: Kind) -> Iterator[str]:
    marks = ["/".join(kind.severities), *(["--deep"] if kind.deep else []), *(["--fix"] if kind.fixed else [])]
    yield f"### `{kind.id}`"
    yield ""
    yield f"{kind.title}. ({', '.join(marks)})"
    yield ""
    yield f"Why: {kind.why}"
    yield ""
    if kind.remedy:
        yield f"Mend it: {kind.remedy}"
        yield ""


if __name__ == "__main__":
    PAGE.write_text(page())
