"""Formulas as browsers draw them by themselves: MathML, made of the LaTeX of the cards."""

import re
from functools import cache
from importlib import import_module
from typing import Final

from markupsafe import Markup

# Words are one text, not a row of letters; what the converter has no name for is an operator by its name.
_WORD: Final = re.compile(r"\\mathrm\{([^{}\\]{2,})\}")
_UNKNOWN: Final = re.compile(r"\\arg(?![a-zA-Z])")


@cache
def formula(latex: str, *, inline: bool = False) -> Markup:
    """A formula of a card.

    Raises:
        ValueError: it is written in a way that is not understood.
    """
    # Whoever never shows a formula does not load the table of all signs.
    convert = import_module("latex2mathml.converter").convert
    text = _UNKNOWN.sub(lambda _: r"\operatorname{arg}", _WORD.sub(r"\\text{\1}", latex))
    made: str = convert(text, display="inline" if inline else "block")
    if "\\" in made or "&#x0005C;" in made:
        raise ValueError(f"expected a formula of known signs, got {latex}")
    # Cards are the service's own, and the converter escapes their texts.
    return Markup(made)  # noqa: S704
