"""Bodies of requests as the document of the API shows them."""

import json
from pathlib import Path
from typing import Any, Final

# By operation and name.
BODIES: Final[dict[str, dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "app" / "api" / "requests.json").read_text(encoding="utf-8")
)
# Stand there for ids of evaluations that exist.
FIRST: Final = "01900000-0000-7000-8000-000000000001"
SECOND: Final = "01900000-0000-7000-8000-000000000002"
SLICED: Final[dict[str, Any]] = BODIES["sliceInput"]["by site"]["input"]
