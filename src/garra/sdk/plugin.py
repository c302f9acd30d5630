"""What a plugin of kind `plugin` is handed when it is switched on: the window in which it may register things.

    def register(api: PluginApi) -> None:
        api.tool(Weather())

Registration is synchronous and closes when `register` returns: whatever a plugin brings is known before anything
of it runs, and can be taken away whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from garra.sdk.model import Api
from garra.sdk.sandbox import Sandbox
from garra.sdk.tool import Tool


class PluginApi(Protocol):
    """The register window. Each call raises UserError once the window is closed.

    `id` is the plugin's; `config` is its checked settings.
    """

    id: str
    config: Mapping[str, Any]

    def tool(self, tool: Tool) -> None:
        """Offer a tool. Raises UserError when the name is taken."""
        ...

    def api(self, api: Api) -> None:
        """Offer an API family. Raises UserError when the family is taken."""
        ...

    def sandbox(self, name: str, sandbox: Sandbox) -> None:
        """Offer a sandbox. Raises UserError when the name is taken."""
        ...

    def port(self, name: str) -> Any:
        """A port named in the manifest's `needs`. Raises UserError for one that is not."""
        ...


Register = Callable[[PluginApi], None]
