"""Formulas of the catalogue as MathML."""

from html.parser import HTMLParser

import pytest

from app.api.ui.pages import formula
from app.domain.catalogue import combinations, describe_metric, find_metrics

MATHML = {
    *("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "msub", "msup", "msubsup", "munder"),
    *("mover", "munderover", "mstyle", "mtable", "mtr", "mtd", "mpadded", "mphantom"),
}


class _Read(HTMLParser):
    """Names of elements and attributes, and whether each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_every_card_has_a_formula_that_browsers_draw() -> None:
    cards = [
        describe_metric(one) for one in find_metrics(scope=None, prevalence=None, inputs=None, task=None, text=None)
    ]
    written = {card.formula for card in cards} | {one.formula for one in combinations()}
    written |= {card.symbol for card in cards if card.symbol}
    assert len(written) > 300
    for latex in written:
        read = _Read(formula(latex))
        assert not read.open, latex
        assert read.tags <= MATHML, (latex, read.tags - MATHML)
        # Styles inside of elements are refused by the policy of the pages.
        assert not read.attributes & {"style", "href", "src"}, latex
        assert "".join(read.texts).strip(), latex


def test_words_are_texts() -> None:
    assert "<mtext>recall</mtext>" in formula(r"\frac{1}{K} \sum_k \mathrm{recall}_k")
    assert formula(r"\pi", inline=True).startswith('<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">')


def test_what_is_not_understood_is_refused() -> None:
    with pytest.raises(ValueError, match="known signs"):
        formula(r"\nonesuch x")
