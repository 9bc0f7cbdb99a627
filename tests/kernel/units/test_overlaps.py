"""Regions and answers against exact fractions over pixels, scikit-learn on the pixels, and SQuAD's own definition."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.inputs.kinds import UNIT_KINDS
from app.domain.inputs.sets import Sets
from app.kernel.metrics.card import Inputs, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import silently
from app.kernel.units.overlaps import Overlaps
from tests.bank import each
from tests.witnesses import sk

CLOSE = 1e-12
METRICS = catalogue().for_task(Task.SETS, {Inputs.LABELS, Inputs.OVERLAPS, Inputs.CLASS_OVERLAPS})
# What is there, what was predicted, the class.
Item = tuple[frozenset[int], frozenset[int], int]
PIXELS = st.frozensets(st.integers(0, 7))
ITEMS = st.lists(st.tuples(PIXELS, PIXELS, st.integers(0, 2)), min_size=1, max_size=7)


def _ratio(above: int, below: int) -> Fraction | None:
    return Fraction(above, below) if below else None


def _of_sums(items: list[Item], share: str) -> Fraction | None:
    there, said, both = (sum(sizes) for sizes in zip(*((len(a), len(b), len(a & b)) for a, b, _ in items), strict=True))
    match share:
        case "jaccard":
            return _ratio(both, there + said - both)
        case "f1":
            return _ratio(2 * both, there + said)
        case "precision":
            return _ratio(both, said)
    return _ratio(both, there)


def _mean(values: list[Fraction | None]) -> Fraction | None:
    known = [value for value in values if value is not None]
    return sum(known, Fraction()) / len(known) if len(known) == len(values) else None


def _alone(item: Item, share: str) -> Fraction:
    """Of one item; what is empty on both sides is right, and on one side wrong."""
    there, said, _ = item
    found = _of_sums([item], share)
    return Fraction(int(there == said)) if found is None else found


def _of_class(items: list[Item], code: int, share: str) -> Fraction | None:
    own = [item for item in items if item[2] == code]
    return _of_sums(own, share) if own else None


Exact = Callable[[list[Item]], list[Fraction | None]]
SHARES = ("jaccard", "f1", "precision", "recall")


def _of_share(share: str) -> dict[str, Exact]:
    """The metrics that are made of one share."""
    return {
        f"samples_{share}": lambda items: [_mean([_alone(item, share) for item in items])],
        f"pooled_{share}": lambda items: [_of_sums(items, share)],
        f"class_{share}": lambda items: [_of_class(items, code, share) for code in range(3)],
        f"mean_class_{share}": lambda items: [_mean([_of_class(items, code, share) for code in range(3)])],
    }


EXACT: dict[str, Exact] = {
    "subset_accuracy": lambda items: [_mean([Fraction(int(a == b)) for a, b, _ in items])],
    **{key: exact for share in SHARES for key, exact in _of_share(share).items()},
    # By default beta is 1.
    "samples_f_beta": _of_share("f1")["samples_f1"],
}
# No more is made of these than the means over the classes of both shares that regions are judged by.
del EXACT["mean_class_precision"], EXACT["mean_class_recall"]


def test_every_metric_has_an_exact_definition() -> None:
    assert EXACT.keys() == {metric.key for metric in METRICS.metrics}


@each("key", EXACT)
@settings(max_examples=20, deadline=None)
@given(items=ITEMS)
def test_against_exact_fractions(key: str, items: list[Item]) -> None:
    sizes = np.array([(len(a), len(b), len(a & b)) for a, b, _ in items], dtype=np.float64)
    data = Overlaps(*sizes.T, codes=np.array([code for *_, code in items]), n_classes=3)
    with silently():
        found = np.atleast_1d(METRICS.by_name[key](data))
    expected = [np.nan if value is None else float(value) for value in EXACT[key](items)]
    assert found.tolist() == pytest.approx(expected, rel=CLOSE, abs=CLOSE, nan_ok=True)


def test_pixels_of_two_regions_as_scikit_learn_has_them() -> None:
    random = np.random.default_rng(3)
    there, said = random.random((20, 64)) < 0.3, random.random((20, 64)) < 0.35
    data = Overlaps(there.sum(axis=1), said.sum(axis=1), (there & said).sum(axis=1))
    pooled = {
        "pooled_jaccard": sk.jaccard_score,
        "pooled_f1": sk.f1_score,
        "pooled_precision": sk.precision_score,
        "pooled_recall": sk.recall_score,
    }
    for key, theirs in pooled.items():
        assert float(METRICS.by_name[key](data)) == pytest.approx(theirs(there.ravel(), said.ravel()), rel=CLOSE)
    of_items = {"samples_jaccard": sk.jaccard_score, "samples_f1": sk.f1_score}
    for key, theirs in of_items.items():
        each = [theirs(one, other) for one, other in zip(there, said, strict=True)]
        assert float(METRICS.by_name[key](data)) == pytest.approx(np.mean(each), rel=CLOSE)


def squad_f1(gold: list[str], predicted: list[str]) -> float:
    """As Rajpurkar et al. (2016) define it, with the rule of SQuAD 2.0 for questions without an answer."""
    if not gold or not predicted:
        return float(gold == predicted)
    same = sum((Counter(gold) & Counter(predicted)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(predicted), same / len(gold)
    return 2 * precision * recall / (precision + recall)


def test_tokens_of_answers_as_in_squad() -> None:
    gold = ["the cat sat on the mat", "paris", "", "in the year 1066", "", "a a a b"]
    said = ["cat sat on mat", "paris france", "", "1066", "no answer", "a b b"]
    right, answered = ([text.split() for text in texts] for texts in (gold, said))
    source = Sets(y_true=right, y_pred=answered).read("/input")
    subject: Subject = UNIT_KINDS[Task.SETS].units(source).subject()
    expected = [squad_f1(*pair) for pair in zip(right, answered, strict=True)]
    data = subject.parts[Inputs.LABELS]
    assert float(METRICS.by_name["token_f1"](data)) == pytest.approx(np.mean(expected), rel=CLOSE)
    assert float(METRICS.by_name["exact_match"](data)) == pytest.approx(1 / 6, rel=CLOSE)


def test_areas_below_1_are_sizes_too() -> None:
    tenths = [0.4, 0.2, 0.0], [0.3, 0.2, 0.5], [0.3, 0.1, 0.0]
    data = Overlaps(*map(np.array, tenths))
    assert float(METRICS.by_name["samples_jaccard"](data)) == pytest.approx((0.75 + 1 / 3 + 0.0) / 3, rel=CLOSE)


def test_the_order_of_tokens_is_said_by_exact() -> None:
    plain, said = (
        Sets(n_true=[2, 3], n_predicted=[2, 3], n_common=[2, 3], exact=exact).read("/input")
        for exact in (None, [True, False])
    )
    assert (plain.counts.tolist(), said.counts.tolist()) == ([[0, 2]], [[1, 1]])
