"""Strategies for what the document has no word for: visible text, metric expressions, inputs that can be evaluated."""

import unicodedata
from typing import Any, Final

from hypothesis import strategies as st

from app.domain.catalogue import (
    ChoiceParameter,
    DecisionParameter,
    MetricCard,
    NumberParameter,
    describe_metric,
    find_metrics,
)

_UNSEEN: Any = ("Cc", "Cf", "Cs", "Zl", "Zp", "Cn")
# Functions that take parts which can be negative.
_OF_ANY_PARTS = ("mean", "min", "max", "range")


def _is_seen(text: str) -> bool:
    return not text.isspace() and unicodedata.normalize("NFC", text) == text


visible_text = st.text(st.characters(exclude_categories=_UNSEEN), min_size=1, max_size=20).filter(_is_seen)


# --- metric expressions ----------------------------------------------------------------------------------------------


def _cards(scope: str) -> list[MetricCard]:
    """Metrics of any number of classes, and of their shares alone, that can say which run is better."""
    found = find_metrics(scope=scope, inputs="matrix", task="multiclass", text=None, prevalence=None)
    return [card for card in map(describe_metric, found) if card.comparable and not card.needs_counts]


def _values(parameter: NumberParameter | ChoiceParameter | DecisionParameter) -> list[str]:
    """Some that it may have, away from ends that may be excluded; classes have no decisions."""
    assert not isinstance(parameter, DecisionParameter)
    if isinstance(parameter, ChoiceParameter):
        return [*parameter.options]
    low = parameter.minimum if parameter.minimum is not None else parameter.above
    high = parameter.maximum if parameter.maximum is not None else parameter.below
    low, high = -5.0 if low is None else low, 5.0 if high is None else high
    if parameter.integral:
        return [str(int(low)), str(int(high))]
    return [f"{low + (high - low) * share:g}" for share in (0.05, 0.5, 0.95)]


def _written(card: MetricCard) -> list[str]:
    """A metric with its parameters as they are, and each of them with other values."""
    return [card.key] + [f"{card.key}({one.name}={value})" for one in card.parameters for value in _values(one)]


# Of others, such as those that are best at 0, a function could not say which run is better.
_ONE_WAY = ("higher_is_better", "lower_is_better")
OVERALL: Final = tuple(text for card in _cards("overall") for text in _written(card))
OF_A_CLASS: Final = tuple(text for card in _cards("class") if card.orientation in _ONE_WAY for text in _written(card))
HIGHER: Final = {
    text for card in _cards("overall") if card.orientation == "higher_is_better" for text in _written(card)
}
_FUNCTIONS = st.sampled_from(_OF_ANY_PARTS)
every_class = st.sampled_from(OF_A_CLASS).map("{}@*".format)
_reduced = st.builds("{}({})".format, _FUNCTIONS, every_class)
# Together only those of which more is better: of others a function could not say which run is.
_parts = st.sampled_from(sorted(HIGHER)) | st.just("gps(recall@*)")
# Of one value, whatever the classes are called.
one_value = st.sampled_from(OVERALL) | _reduced | st.builds("{}({}, {})".format, _FUNCTIONS, _parts, _parts)


# --- inputs, by kind, as they stand in JSON --------------------------------------------------------------------------

texts = st.lists(visible_text, min_size=2, max_size=4, unique=True)
classes = texts | st.lists(st.integers(-5, 300), min_size=2, max_size=4, unique=True)
weights = st.sampled_from([0.5, 1.0, 1.25, 2.0, 3.75])


@st.composite
def beside(draw: st.DrawFn, size: int) -> dict[str, Any]:
    """What may come with samples of any kind."""
    members: dict[str, Any] = {}
    if draw(st.booleans()):
        members["sample_ids"] = draw(
            st.lists(st.integers(-(2**40), 2**40), min_size=size, max_size=size, unique=True)
            | st.lists(visible_text, min_size=size, max_size=size, unique=True)
        )
    if draw(st.booleans()):
        members["sample_weight"] = draw(st.lists(weights, min_size=size, max_size=size))
    if size > 1 and draw(st.booleans()):
        groups = draw(st.lists(st.sampled_from(["p", "q", "r"]), min_size=size - 1, max_size=size - 1))
        # Two at least, since else nothing is known of how they differ.
        members["group_ids"] = ["o", *groups]
    return members


@st.composite
def predictions(draw: st.DrawFn, labels: list[Any] | None = None) -> dict[str, Any]:
    labels = draw(classes) if labels is None else labels
    size = draw(st.integers(1, 12))
    column = st.lists(st.sampled_from(labels), min_size=size, max_size=size)
    return {
        "kind": "predictions",
        "y_true": draw(column),
        "y_pred": draw(column),
        "labels": labels,
        **draw(beside(size)),
    }


@st.composite
def scores(draw: st.DrawFn, labels: list[Any] | None = None) -> dict[str, Any]:
    labels = draw(classes)[:2] if labels is None else labels
    size = draw(st.integers(1, 12))
    return {
        "kind": "scores",
        "y_true": draw(st.lists(st.sampled_from(labels), min_size=size, max_size=size)),
        "scores": draw(st.lists(st.floats(-1e6, 1e6), min_size=size, max_size=size)),
        "labels": labels,
        "threshold": draw(st.sampled_from([-1.0, 0.25, 0.5])),
        **draw(beside(size)),
    }


@st.composite
def probabilities(draw: st.DrawFn, labels: list[Any] | None = None) -> dict[str, Any]:
    labels = draw(classes) if labels is None else labels
    size = draw(st.integers(1, 12))
    rows = st.lists(st.integers(0, 16), min_size=len(labels), max_size=len(labels)).filter(any)
    shares = [[part / sum(row) for part in row] for row in draw(st.lists(rows, min_size=size, max_size=size))]
    return {
        "kind": "probabilities",
        "y_true": draw(st.lists(st.sampled_from(labels), min_size=size, max_size=size)),
        "probabilities": shares,
        "labels": labels,
        **draw(beside(size)),
    }


@st.composite
def folds(draw: st.DrawFn) -> dict[str, Any]:
    """Folds of one kind with the same classes and the same members."""
    make = draw(st.sampled_from([predictions, scores, probabilities]))
    labels = draw(classes)[: 2 if make is scores else None]
    found = draw(st.lists(make(labels), min_size=2, max_size=3))
    shared = set.intersection(*map(set, found)) - {"sample_ids"}
    threshold = {"threshold": found[0]["threshold"]} if make is scores else {}
    return {
        "kind": "folds",
        "folds": [{name: one for name, one in fold.items() if name in shared} | threshold for fold in found],
    }


@st.composite
def matrices(draw: st.DrawFn) -> dict[str, Any]:
    size = draw(st.integers(2, 4))
    entry = st.integers(0, 50) | st.sampled_from([0.5, 2.25])
    rows = st.lists(entry, min_size=size, max_size=size)
    matrix = draw(st.lists(rows, min_size=size, max_size=size).filter(lambda rows: any(map(any, rows))))
    return {"kind": "confusion_matrix", "matrix": matrix}


@st.composite
def counts(draw: st.DrawFn) -> dict[str, Any]:
    found = draw(st.lists(st.integers(0, 100), min_size=4, max_size=4).filter(any))
    return {"kind": "binary_counts", **dict(zip(("tp", "fn", "fp", "tn"), found, strict=True))}


of_samples = predictions() | scores() | probabilities()
inputs = matrices() | counts() | of_samples | folds()
