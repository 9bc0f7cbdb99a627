"""Output of the command: the answer alone on standard output, hints on standard error."""

import json
import os
import re
import shutil
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from prevail.client import Client
from prevail.command import colours
from prevail.command.codes import UsageError
from prevail.results.answer import Answer
from prevail.results.listing import Facts, Listing
from prevail.results.words import table_text

MEDIA: Final[Mapping[str, str]] = {
    "text": "text/plain",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
}
_NARROWEST, _WIDEST = 60, 200


def style() -> dict[str, Any]:
    """Return the query parameters of a text for this terminal, or of a plain one."""
    if not sys.stdout.isatty():
        return {"style": "ascii", "width": 80}
    width = min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return {"style": "unicode" if encoding == "utf8" else "ascii", "width": width}


def written(client: Client, answer: Answer, form: str) -> str:
    """An answer in a form: ``text``, ``json``, ``markdown``, ``csv`` or ``html``."""
    if form == "json":
        text = json.dumps(answer.to_dict(), indent=2, ensure_ascii=False) + "\n"
        # JSON leaves these as they are, and terminals obey them.
        return re.sub("[\x7f-\x9f]", lambda sign: f"\\u{ord(sign[0]):04x}", text)
    if isinstance(answer, Listing | Facts):
        if form == "html":
            raise UsageError("there is no page of this; -o json, markdown and csv are")
        return _simple(answer, form)
    return client.report(answer, MEDIA[form], **(style() if form == "text" else {}))


def _simple(answer: Listing | Facts, form: str) -> str:
    if form == "text":
        return answer.summary() + "\n"
    import csv  # only here
    import io

    text = io.StringIO()
    columns = answer.columns
    if form == "csv":
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(columns)
        lines.writerows([_defused(cell) for cell in row] for row in answer.rows())
        return text.getvalue()
    return f"```\n{table_text(columns, answer.rows())}\n```\n"


def _defused(cell: Any) -> Any:
    """Text that a spreadsheet would take for a formula, as text."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def emit(client: Client, answer: Answer, chosen: Namespace) -> None:
    """Print an answer, or write it to the file of ``--write``."""
    if isinstance(answer, Listing) and not answer.is_complete and chosen.output != "text":
        print(answer.title(), file=sys.stderr)
    put(written(client, answer, chosen.output), chosen)


def put(text: str, chosen: Namespace) -> None:
    """Print a text, or write it to the file of ``--write``."""
    if getattr(chosen, "write", None):
        write_file(chosen.write, text)
    else:
        of_text = chosen.output in ("text", "markdown")
        on = of_text and colours.wanted(sys.stdout, chosen.color)
        print(colours.marked(text if text.endswith("\n") else f"{text}\n", on=on), end="")


def write_file(path: str, text: str, *, append: bool = False) -> None:
    """Write a text to a file.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        with Path(path).open("a" if append else "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def hint(text: str) -> None:
    """Say what may be done next, on a terminal only."""
    if sys.stderr.isatty() and not os.environ.get("CI"):
        print(colours.plain(text), file=sys.stderr)
