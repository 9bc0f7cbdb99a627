"""The OpenAPI document of the service as it is committed: ``test_documentation`` holds it to be that of the code."""

import json
from pathlib import Path
from typing import Any, Final

DOCUMENT: Final[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "docs" / "openapi.json").read_text())
