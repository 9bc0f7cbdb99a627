"""Write `docs/reference/settings.md` from the settings model, or with `--check` say whether it is fresh."""

import sys
from pathlib import Path
from typing import Any, Final

from annotated_types import BaseMetadata, Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from app.settings import Settings
from scripts.written import write_or_check

TARGET: Final = Path(__file__).resolve().parent.parent / "docs" / "reference" / "settings.md"
SIGNS: Final[dict[type[BaseMetadata], tuple[str, str]]] = {
    Ge: ("≥", "ge"),
    Gt: (">", "gt"),
    Le: ("≤", "le"),
    Lt: ("<", "lt"),
}
HEADER: Final = """\
# Settings

Read from the environment at start; a value that does not fit, or a variable that begins with `PREVAIL_` and is not in
this list, stops the start with a message. Written by `make docs` from `app/settings.py`: edit there.

| variable | default | allowed | what it does |
| --- | --- | --- | --- |
"""


def describe_default(field: FieldInfo) -> str:
    """The default as an operator would write it."""
    value: Any = field.default
    return "unset" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def describe_range(field: FieldInfo) -> str:
    """The bounds of a number."""
    parts = []
    for bound in field.metadata:
        for kind, (sign, attribute) in SIGNS.items():
            if isinstance(bound, kind):
                parts.append(f"{sign} {getattr(bound, attribute)}")
    return ", ".join(parts)


def render() -> str:
    """The whole page."""
    rows = [
        f"| `PREVAIL_{name.upper()}` | {describe_default(field)} | {describe_range(field)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return HEADER + "\n".join(rows) + "\n"


def main() -> int:
    """Write or check the file; returns the exit code."""
    stale = f"docs/{TARGET.name} is not what app/settings.py says; run `make docs`"
    return write_or_check(__doc__, TARGET, render(), stale)


if __name__ == "__main__":
    sys.exit(main())
