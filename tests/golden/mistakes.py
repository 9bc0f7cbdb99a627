"""Write docs/reference/errors.md: what the service says to the likeliest mistakes, as it was recorded."""

import json
from pathlib import Path

from app.api.problems import PROBLEM_TYPES
from tests.golden.calls import Json
from tests.golden.playing import filled, read_answers
from tests.golden.requests.mistaking import MISTAKES

TARGET = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
_HEAD = """# Errors

Every refusal is a problem of [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457), `application/problem+json`. Programs
read `code`, which never changes its meaning; people read `detail`. Where a place is at fault, `errors` lists every
fault with its place, the JSON `pointer` into the body or the `parameter` of the address, and with `suggestions` where a
name was unknown. Of what is refused nothing is stored.

```json
{answer}
```

## The likeliest mistakes

Written from recorded answers (`make golden`): two for each code of a fault, and of several faults the last one.

| code | mistake | place | what the service says |
| --- | --- | --- | --- |
"""
_CODES = """
## All codes of problems

"""


def told(body: Json) -> tuple[str, str, str]:
    """Place, code and sentence of the last fault; of the problem where it names no place."""
    fault = body.get("errors", [body])[-1]
    place = fault.get("pointer", fault.get("parameter", ""))
    detail = filled(fault["detail"]).replace("such as time", f"such as {filled('time')}")
    return place or ("the body" if "pointer" in fault else ""), fault["code"], detail


def render() -> str:
    """The text of the page."""
    recorded = read_answers("mistakes")
    shown = recorded["lables"]["body"]
    members = ("type", "title", "status", "detail", "code", "errors")
    answer = ",\n".join(f'  "{name}": {json.dumps(shown[name])}' for name in members)
    examples: dict[str, list[str]] = {}
    for mistake in MISTAKES:
        place, code, said = told(recorded[mistake.call.name]["body"])
        examples.setdefault(code, []).append(_row(code, mistake.what, place, said))
    rows = [row for found in examples.values() for row in found[:2]]
    codes = [f"- `{code}`: {meaning}\n" for code, meaning in sorted(PROBLEM_TYPES.items())]
    return _HEAD.format(answer="{\n" + answer + "\n}") + "".join(rows) + _CODES + "".join(codes)


def _row(first: str, *cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in (first, *cells)) + " |\n"


if __name__ == "__main__":
    TARGET.write_text(render())
