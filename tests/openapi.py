"""The OpenAPI document of the service as it is committed: ``test_documentation`` holds it to be that of the code."""

import json
from pathlib import Path
from typing import Any, Final

COMMITTED: Final[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "docs" / "openapi.json").read_text())


def _resolved(part: Any) -> Any:
    """A part of the document with responses and parameters in the place of references to them."""
    if isinstance(part, list):
        return [_resolved(one) for one in part]
    if not isinstance(part, dict):
        return part
    kind, _, name = (
        part.get("$ref", "").removeprefix("#/components/").partition("/") if "$ref" in part else ("", "", "")
    )
    if kind in ("responses", "parameters"):
        return COMMITTED["components"][kind][name]
    return {key: _resolved(value) for key, value in part.items()}


DOCUMENT: Final[dict[str, Any]] = {**COMMITTED, "paths": _resolved(COMMITTED["paths"])}
