"""Colours of texts in a terminal. They repeat what words say, and only words that begin a line have one."""

import os
import re
from typing import Final, TextIO

_RED, _YELLOW, _GREEN, _BOLD = "31", "33", "32", "1"
_OF_WORDS: Final = {
    "CRITICAL": _RED,
    "WARNING": _YELLOW,
    "NOTE": _BOLD,
    "FAIL": _RED,
    "INCONCLUSIVE": _YELLOW,
    "PASS": _GREEN,
    "fail": _RED,
    "inconclusive": _YELLOW,
    "pass": _GREEN,
    "error:": _RED,
}
# At the beginning of a line, or of the line of a rule; a name that is such a word stands elsewhere.
_WORD: Final = re.compile(
    r"^(?P<space>(?:  )?)"
    r"(?P<word>CRITICAL|WARNING|NOTE|FAIL|INCONCLUSIVE|PASS|error:|(?<=  )(?:fail|inconclusive|pass))(?= |$)",
    re.MULTILINE,
)


# What a terminal obeys: sequences that end by themselves, then any sign of control but tabs and ends of lines.
_OBEYED: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def plain(text: str) -> str:
    """Return the text without anything that a terminal would obey: it comes from a server, which has it from others."""
    return _OBEYED.sub("", text)


def wanted(stream: TextIO, asked: str = "auto") -> bool:
    """Are colours for this stream? `NO_COLOR` and a terminal that has none say no."""
    if asked != "auto":
        return asked == "always"
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def marked(text: str, *, on: bool) -> str:
    """Return the text as it may be printed, with its words in colours."""
    text = plain(text)
    if not on:
        return text
    return _WORD.sub(lambda one: f"{one['space']}\x1b[{_OF_WORDS[one['word']]}m{one['word']}\x1b[0m", text)
