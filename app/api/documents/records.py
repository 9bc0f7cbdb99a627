"""Writes documents as CSV in long form, exact, for spreadsheets and data frames."""

import csv
from io import StringIO

from app.api.documents.document import Document

# With these a spreadsheet begins a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(document: Document) -> str:
    """Return the values of a document, a line for each."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(document.records.heads)
    for line in document.records.rows:
        writer.writerow([_defused(cell) if isinstance(cell, str) else cell for cell in line])
    return text.getvalue()


def _defused(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    return f"'{text}" if text.startswith(_FORMULA) else text
