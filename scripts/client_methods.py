"""Write `docs/reference/client-methods.md` from the client, or with `--check` say whether it is fresh."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from prevail import Client
from prevail.wire.steps import Operation

from scripts.written import write_or_check

TARGET: Final = Path(__file__).resolve().parent.parent / "docs" / "reference" / "client-methods.md"
HEADER: Final = """\
# Methods of the client

`prevail.Client` has these methods; of `prevail.AsyncClient` they are coroutines. A run is an evaluation, its id,
`"model:version"` or `"tag=value"`. Names of models and data sets may be `"name:version"`. Written by `make docs` from
the docstrings in `client/src/prevail/operations`: edit there. [How the client is used](../client.md).
"""
_ENTRY: Final = re.compile(r"(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*): (?P<text>.*)")


def methods() -> Iterator[tuple[type, list[tuple[str, Callable[..., Any]]]]]:
    """Yield the classes that the client is made of with their operations, in the order of the source."""
    for part in Client.__mro__:
        own = [name for name, one in vars(part).items() if isinstance(one, Operation)]
        if own:
            yield part, [(name, getattr(Client, name)) for name in own]


def call(name: str, method: Callable[..., Any]) -> str:
    """Return how a method is called, and what it returns."""
    found = inspect.signature(method)
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in list(found.parameters.values())[1:]]
    # That the first ones have no names matters to nobody who reads a list.
    named = [one.replace(kind=one.POSITIONAL_OR_KEYWORD) if one.kind is one.POSITIONAL_ONLY else one for one in plain]
    return f"{name}{inspect.Signature(named)} -> {_type(found.return_annotation)}"


def _type(annotation: Any) -> str:
    if annotation in (None, type(None)):
        return "None"
    text = (
        annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else str(annotation)
    )
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)


def explained(method: Callable[..., Any]) -> str:
    """Return the docstring of a method as Markdown: its sections are lists."""
    lines: list[str] = []
    section = ""
    for line in (inspect.getdoc(method) or "").replace("``", "`").split("\n"):
        if re.fullmatch(r"(Args|Returns|Raises):", line):
            section = line
            lines += ["", f"{line[:-1]}:" if line != "Args:" else "Arguments:", ""]
        elif section and (entry := _ENTRY.fullmatch(line.strip())) and line.startswith("    ") and line[4:5] != " ":
            lines.append(f"- `{entry['names']}`: {entry['text']}")
        elif section and line.strip():
            lines.append(f"  {line.strip()}" if lines[-1].startswith(("-", "  ")) else line.strip())
        else:
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def render() -> str:
    """Return the whole page."""
    parts = [HEADER]
    for part, found in methods():
        parts.append(f"## {(inspect.getdoc(part) or part.__name__).split('.')[0]}\n")
        parts += [f"### {name}\n\n```text\n{call(name, one)}\n```\n\n{explained(one)}\n" for name, one in found]
    return "\n".join(parts)


def main() -> int:
    """Write or check the file; returns the exit code."""
    stale = f"docs/reference/{TARGET.name} is not what the client says; run `make docs`"
    return write_or_check(__doc__, TARGET, render(), stale)


if __name__ == "__main__":
    sys.exit(main())
