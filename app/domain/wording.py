"""Numbers and names as messages, texts and pages write them: one rounding for all of them.

What is rounded is the shortest decimal that stands for the number, 0.9525 for the double nearest to it, and halves go
away from zero. Formatting the double would decide halves by its binary digits: up here and down there.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_HALF_UP, Context, Decimal
from difflib import get_close_matches
from math import isnan
from typing import Any, Final

import numpy as np

# Digits enough for every double without an exponent.
_EXACTLY = Context(prec=800, rounding=ROUND_HALF_UP)


def sentence(text: str) -> str:
    """Return a text as a sentence begins."""
    return text[:1].upper() + text[1:]


_ENDING: Final = ". "
_BETWEEN_SENTENCES: Final = re.compile(r'\. (?=[^"]*(?:"[^"]*"[^"]*)*$)')


def sentences_in(text: str) -> list[str]:
    """Return the sentences of a text of the service, without their ends; names in quotes are not looked into."""
    return _BETWEEN_SENTENCES.split(text.removesuffix("."))


def written_day(day: date) -> str:
    """Write a day: 21 Nov 2026."""
    return f"{day.day} {day:%b %Y}"


# --- numbers ---------------------------------------------------------------------------------------------------------


def rounded(value: float, digits: int = 3) -> str:
    """Write a number with so many decimals, five at most: ``rounded(0.9525)`` is 0.953."""
    return _written(value, 1, digits)


def percent(value: float, digits: int | None = 1) -> str:
    """Write a share in percent: ``percent(0.9525)`` is 95.3 %. With ``digits=None`` it has as many decimals as it
    needs. A share that is not 0 or 1 has the decimals that show it: ``percent(6 / 42777)`` is 0.01 %.
    """
    if digits is None or not 0.0 < value < 1.0:
        return f"{_written(value, 100, digits)} %"
    for more in range(digits, _MOST):
        text = _written(value, 100, more)
        if Decimal(text) not in (0, 100):
            return f"{text} %"
    return "<0.0001 %" if value < _HALF else ">99.9999 %"


def share(part: float) -> str:
    """Write a share of cases: ``share(0.158)`` is 16 %. A share that is not all or none never reads as if it were."""
    if 0.0 < part < _RARE:
        return f"{significant(100.0 * part, 2)} %" if part >= _LEAST_SHARE else "less than 0.001 %"
    if 1.0 - _RARE < part < 1.0:
        return "more than 99 %"
    return percent(part, 0)


# Shares below the first have two digits, those below the second a bound.
_RARE, _LEAST_SHARE = 0.01, 1e-5


def significant(value: float, digits: int = 4) -> str:
    """Write a number with so many significant digits at most, small and large ones with an exponent."""
    exact = Decimal(repr(float(value)))
    if not exact.is_finite() or not exact:
        return _written(value, 1, None)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    nearest = exact.quantize(unit, context=_EXACTLY).normalize(_EXACTLY)
    power = nearest.adjusted()
    # As the format `g` has it.
    return f"{nearest:f}" if -5 < power < digits else f"{nearest.scaleb(-power, _EXACTLY):f}e{power:+03d}"


def about(samples: float) -> str:
    """Write a needed number of samples, rounded up to two digits: ``about(23385)`` is 24,000."""
    exact = Decimal(repr(float(samples)))
    return f"{exact.quantize(Decimal(1).scaleb(max(exact.adjusted() - 1, 0)), ROUND_CEILING, _EXACTLY):,f}"


def whole(number: float) -> str:
    """Write a number of things with commas; weights have three decimals at most, unless these would read as none."""
    text = rounded(number)
    if number and not Decimal(text):
        return significant(number, 2)
    return f"{Decimal(text):,f}".rstrip("0").rstrip(".")


def numbered(number: float, things: str = "samples") -> str:
    """Write a number of things that are called so in the plural: 1 query, 1 class, 2,000 queries."""
    text = whole(number)
    return f"{text} {things if text != '1' else re.sub('(?<=ss)es$|s$', '', re.sub('ies$', 'y', things))}"


def chance(probability: float | None) -> str:
    """Write a probability that was counted in draws, which never show that something is sure."""
    if probability is None:
        return PLAIN.absent
    if probability < 0.01:
        return "<1 %"
    return ">99 %" if probability > 0.99 else percent(probability, 0)


def p_value(p: float) -> str:
    """Write a p value with two digits below 0.1 and two decimals above; ``< 0.001`` below that."""
    return "< 0.001" if p < 0.001 else rounded(p, 3 if p < 0.1 else 2)


def p_said(p: float, *, bound: bool = False) -> str:
    """Write a p value in a sentence: p = 0.020, p < 0.001; an upper bound of one is rounded up: p at most 0.020."""
    if bound:
        p = float(Decimal(repr(float(p))).quantize(Decimal("0.001" if p < 0.1 else "0.01"), ROUND_CEILING))
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p {'at most' if bound else '='} {text}"


@dataclass(frozen=True, slots=True)
class Notation:
    """One way to write values with their limits.

    All numbers of one estimate have the same number of decimals. What is not 0 or 1 never reads as one of them: it has
    up to five decimals, and beyond these a bound, such as >0.99999. A whole number of 2 or more that has no limits is a
    count and has no decimals; other numbers from 10 on have two, from 100 on one, and from 10,000 on none.

    Attributes:
        minus: The sign of negative numbers.
        absent: Stands for what has no value.
        follows: Decimals follow the width of the interval, and exactly 0 and 1 have none; else there are three.
    """

    minus: str = "-"
    absent: str = "-"
    follows: bool = False

    def value(self, value: float | None, *, sign: bool = False, near: Sequence[float] = ()) -> str:
        """Write a value without limits."""
        return self.estimate(value, None, None, sign=sign, near=near)[0]

    def interval(self, low: float | None, high: float | None, *, sign: bool = False) -> str:
        """Write both ends of an interval, or the only one; without any nothing where decimals follow, else a dash."""
        return self.estimate(None, low, high, sign=sign)[1]

    def estimate(
        self,
        value: float | None,
        low: float | None,
        high: float | None,
        *,
        sign: bool = False,
        near: Sequence[float] = (),
    ) -> tuple[str, str]:
        """Write a value and its interval.

        Args:
            value: None for an undefined one.
            low: Lower end of the interval; None where it is open.
            high: Upper end; both are None where there is no interval.
            sign: Positive numbers have a sign too, since they are differences.
            near: Limits of a rule, which no other number may read as.
        """
        digits = self.decimals(value, low, high, near=near)
        if low is None and high is None:
            text = self.fixed(value, digits, sign=sign, count=True)
            return text, "" if self.follows else self.absent
        ends = [self.fixed(end, digits, sign=sign) for end in (low, high)]
        text = " to ".join(ends)
        if low is None or high is None:
            text = f"at least {ends[0]}" if high is None else f"at most {ends[1]}"
        return self.fixed(value, digits, sign=sign), text

    def said(self, value: float | None, low: float | None, high: float | None, *, sign: bool = False) -> str:
        """Write a value in a sentence, its interval behind it where there is one: 0.958 (0.948 to 0.966)."""
        text, ends = self.estimate(value, low, high, sign=sign)
        return text if ends in ("", self.absent) else f"{text} ({ends})"

    def decimals(
        self, value: float | None, low: float | None = None, high: float | None = None, *, near: Sequence[float] = ()
    ) -> int:
        """Return how many decimals a value and its limits have."""
        known = [one for one in (value, low, high) if one is not None]
        least = 3
        if self.follows and low is not None and high is not None:
            least = 2 if high - low >= 0.1 else 3 if high - low >= 0.002 else 4
        size = abs(known[0]) if known else 0.0
        least = min(least, 1 if size >= 100.0 else 2 if size >= 10.0 else 4)
        return max((_apart(one, least, (0.0, 1.0, -1.0, *near)) for one in known), default=least)

    def fixed(self, value: float | None, digits: int, *, sign: bool = False, count: bool = False) -> str:
        """Write one number with so many decimals, or as a bound where they do not tell it from 0 or 1.

        Args:
            value: None for an absent one.
            digits: Of the estimate that it belongs to.
            sign: Positive numbers have a sign too.
            count: A whole number of 2 or more has no decimals.
        """
        if value is None:
            return self.absent
        if sign and abs(value) < _NOISE:
            value = 0.0
        text, relation = _number(value, digits, exact=self.follows, count=count)
        plus = "+" if sign and value > 0.0 else ""
        return relation + (plus + text).replace("-", self.minus)


PLAIN: Final = Notation()
PAGE: Final = Notation(minus="\u2212", absent="\u2013", follows=True)


def number(value: float | None) -> str:
    """Write a value in a sentence or a text, without limits."""
    return PLAIN.value(value)


# Decimals at most; from the first size on there are commas, from the second on no decimals, from the third on an
# exponent.
_MOST: Final = 5
_COMMA, _LARGE, _HUGE = 1e3, 1e4, 1e9
# A difference nearer to 0, or a value nearer to 1, is what arithmetic left over.
_NOISE: Final = 1e-12
_HALF: Final = 0.5


def _apart(value: float, least: int, others: Sequence[float]) -> int:
    """Return the decimals from which on a number reads as none of the others; ``least`` where there are none."""
    # What lies farther off than a unit of the last decimal is told apart.
    kept = [one for one in others if one != value and abs(one - value) < 10.0**-least]
    if not kept or not abs(value) < _LARGE:
        return least
    return next((digits for digits in range(least, _MOST + 1) if float(rounded(value, digits)) not in kept), least)


def _number(value: float, digits: int, *, exact: bool, count: bool) -> tuple[str, str]:
    """Return a number without its sign of a difference, and ``<`` or ``>`` where it is a bound only."""
    if abs(abs(value) - 1.0) < _NOISE:
        value = float(round(value))
    size = abs(value)
    if not size < _LARGE:
        return significant(value) if not size < _HUGE else f"{Decimal(rounded(value, 0)):,f}", ""
    if (count and size >= 2.0 and value == int(value)) or (exact and value in (0.0, 1.0, -1.0)):
        return f"{int(value):,}", ""
    text = rounded(value, digits)
    written = abs(float(text))
    if value in (0.0, 1.0, -1.0) or written not in (0.0, 1.0) or size > 1.0:
        return (text if written < _COMMA else f"{Decimal(text):,f}"), ""
    # It lies between 0 and 1 and would read as one of them.
    unit = Decimal(1).scaleb(-_MOST)
    bound = unit if size < _HALF else 1 - unit
    return f"{bound.copy_sign(Decimal(value)):f}", "<" if (size < _HALF) == (value > 0.0) else ">"


def _written(value: float, scale: int, digits: int | None) -> str:
    exact = Decimal(repr(float(value)))
    if not exact.is_finite():
        return "undefined" if isnan(value) else "infinity" if value > 0 else "minus infinity"
    scaled = exact * scale
    if digits is None:
        text = f"{scaled:f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{scaled.quantize(Decimal(1).scaleb(-digits), context=_EXACTLY):f}"
    # What rounds to zero has no sign.
    return text if Decimal(text) else text.removeprefix("-")


# --- runs ------------------------------------------------------------------------------------------------------------


def run_name(model: Mapping[str, Any] | None) -> str:
    """Return the name of a model and its version."""
    if model is None:
        return ""
    return printable(f"{model['name']} {model['version']}" if model.get("version") else model["name"])


def dataset_name(dataset: Mapping[str, Any] | None, *, version: bool = False) -> str:
    """Return the name of a dataset and its split, with its version where that is wanted."""
    if dataset is None:
        return ""
    name = f"{dataset['name']} {dataset['version']}" if version and dataset.get("version") else dataset["name"]
    return printable(f"{name}, {dataset['split']}" if dataset.get("split") else name)


def run_title(named: Mapping[str, Any]) -> str:
    """Return the model and the dataset of an evaluation."""
    model, dataset = run_name(named.get("model")), dataset_name(named.get("dataset"))
    return f"{model} on {dataset}" if model and dataset else model or dataset or "evaluation, not saved"


def run_names(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return names that tell runs apart: the models, with what else differs where these are the same."""
    names = [run_name(run["model"]) for run in runs]
    if len(set(names)) < len(names):
        names = [run_title(run) for run in runs]
    if len(set(names)) < len(names):
        names = [f"{name} ({place})" for place, name in enumerate(names, start=1)]
    return names


# Categories of characters that would do something to a terminal in place of being shown: controls, formats such as
# those that turn the direction of writing, surrogates, separators of lines and of paragraphs.
_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: str) -> str:
    r"""Return a name as it can be shown: what a terminal would obey is written out, such as ``\x1b``."""
    if text.isprintable():
        # Nearly all names are: none of these categories is printable.
        return text
    return "".join(one if unicodedata.category(one) not in _UNSHOWN else _escaped(one) for one in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# --- names -----------------------------------------------------------------------------------------------------------


def name(label: str) -> str:
    """Write a class in a sentence: as it is where it reads as a name, and as no end of a sentence, else in quotes."""
    return label if _PLAIN.fullmatch(label) and _ENDING not in label else f'"{label}"'


def class_before(label: str) -> str:
    """Return what stands before a class in a sentence: nothing, or the word, where its name would read as a number."""
    return "" if any(map(str.isalpha, label)) else "class "


def called(label: str) -> str:
    """Write a class on a page: fraud, or class 1."""
    return class_before(label) + printable(label)


def names(labels: Sequence[str]) -> str:
    """Write classes or metrics in a sentence, the first three of more than ten: A, B and C."""
    kept = labels if len(labels) <= MOST_NAMED else labels[:_FIRST_NAMED]
    said = [name(label) for label in kept]
    if kept is not labels:
        said.append(f"{len(labels) - len(kept)} more")
    *most, last = said
    return f"{', '.join(most)} and {last}" if most else last


def classes(labels: Sequence[str]) -> str:
    """Write class A, or classes A and B; of more than three only how many, and `listed` ends what is said of them."""
    if len(labels) > _FIRST_NAMED:
        return f"{len(labels)} classes"
    return f"{'classes' if len(labels) > 1 else 'class'} {names(labels)}"


def listed(labels: Sequence[str]) -> str:
    """Write the last sentence about classes of which only the number was said: They are A, B, C and D."""
    return f" They are {names(labels)}." if len(labels) > _FIRST_NAMED else ""


# Evidence names this many classes, and messages as many or the first of them; the rest is counted.
MOST_NAMED: Final = 10
_FIRST_NAMED: Final = 3
# Each part begins with a sign that no name has, so that a name is read in one pass however long it is.
_PLAIN: Final = re.compile(r"\w+([ :/&+.-]+\w+)*")
LONGEST_SHOWN: Final = 60
MOST_SUGGESTIONS: Final = 3


def shown(text: str) -> str:
    """A text for a message, cut when it is long."""
    return repr(text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…")


def nearest_labels(label: str, labels: Sequence[str]) -> tuple[str, ...]:
    """The classes that come nearest to an unknown one, best first."""
    folded: dict[str, str] = {}
    for candidate in labels:
        folded.setdefault(candidate.strip().casefold(), candidate)
    found = get_close_matches(label.strip().casefold(), folded, n=MOST_SUGGESTIONS, cutoff=0.5)
    return tuple(folded[name] for name in found)


def described(value: Any) -> str:
    """Type of a JSON value in words, with the value of a number."""
    match value:
        case str():
            return "a string"
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float() | np.number():
            return f"the number {value}"
        case list() | np.ndarray():
            return "an array"
        case dict():
            return "an object"
    return type(value).__name__


def did_you_mean(suggestions: Sequence[str]) -> str:
    """The end of a sentence that offers what may have been meant; nothing for none."""
    return f"; did you mean {' or '.join(suggestions)}?" if suggestions else ""
