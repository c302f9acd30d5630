"""Where the files of the web page lie. The gateway is handed the folder and knows nothing of who made it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import garra

FILES: Final = Path(garra.__file__).parent / "faces" / "web" / "assets"
