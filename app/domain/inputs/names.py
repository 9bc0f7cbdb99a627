"""Names that people give: of models, datasets, classes and tags.

A name is what is seen. Unicode writes some letters in two ways (one character, or a letter and an accent), so names are
brought to one form, NFC; characters that nobody sees, or that turn the text around them, are refused.
"""

import unicodedata

LONGEST_NAME = 256
# Control characters, format characters (zero width, direction marks), halves of pairs, ends of lines and paragraphs.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def normalized(text: str) -> str:
    """The text in Unicode's form NFC, so that one name is written in one way."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def unseen_character(text: str) -> str | None:
    """The first character that is not seen, as U+0000; None when there is none."""
    if text.isprintable():
        return None
    return next((f"U+{ord(one):04X}" for one in text if unicodedata.category(one) in _UNSEEN), None)


def fault_of_name(text: str) -> str | None:
    """What keeps a text from being a name, as a sentence that says what was expected; None when it is one."""
    if not text:
        return f"expected 1 to {LONGEST_NAME} characters, got none"
    if len(text) > LONGEST_NAME:
        return f"expected 1 to {LONGEST_NAME} characters, got {len(text)}"
    unseen = unseen_character(text)
    if unseen is not None:
        return f"expected text without control characters and other unseen ones, got {unseen}"
    if text.isspace():
        return "expected more than spaces"
    return None
