"""Write app/api/examples.json: a recorded answer of every shape that operations answer."""

import json
from pathlib import Path
from typing import Any

from tests.golden.playing import filled
from tests.golden.requests import GROUPS
from tests.golden.test_documented import answered, of_schema, shapes
from tests.openapi import DOCUMENT

TARGET = Path(__file__).parents[2] / "app" / "api" / "examples.json"
# An empty list shows nothing, so any other answer is better.
_EMPTY = 1_000_000
# The answer that shows most, where the smallest one shows little: group and name of the request.
CHOSEN = {"Evaluation": ("kept", "not-kept"), "BatchResponse": ("kept", "batch-minimal")}


def examples() -> dict[str, Any]:
    """Answers by the name of their schema: the chosen one, else the smallest."""
    found: dict[str, tuple[int, Any]] = {}
    for group in GROUPS:
        for name, method, path, status, body in answered(group):
            if status >= 300 or path.endswith("{form}"):
                continue
            content = DOCUMENT["paths"][path][method]["responses"][str(status)]["content"]["application/json"]
            names = [one["$ref"].rpartition("/")[2] for one in shapes(content["schema"])]
            schema = next((one for one in names if len(names) == 1 or of_schema(one).is_valid(body)), None)
            if schema is not None and CHOSEN.get(schema, (group, name)) == (group, name):
                size = len(json.dumps(body)) + _EMPTY * (isinstance(body, dict) and body.get("items") == [])
                if schema not in found or size < found[schema][0]:
                    found[schema] = size, body
    return {schema: _short(filled(body)) for schema, (_, body) in sorted(found.items())}


def _short(value: Any) -> Any:
    """The same with numbers of six digits, which is what a reader looks at."""
    match value:
        case dict():
            return {name: _short(one) for name, one in value.items()}
        case list():
            return [_short(one) for one in value]
        case float():
            return float(f"{value:.6g}")
    return value


def render() -> str:
    """The text of the file."""
    return json.dumps(examples(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(render())
