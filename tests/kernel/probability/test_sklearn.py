"""Every metric that scikit-learn has, against it: with and without ties and weights, small and large."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.proper_scores import log_loss
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import phi_of
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.influence import Influences
from tests.bank import each
from tests.kernel.probability.problems import Codes, softmax_problem, tied_problem, value
from tests.witnesses import sk

Witness = Callable[[Codes, Array, Array | None], object]


def one_hot(y: Codes, p: Array) -> Array:
    return np.eye(p.shape[1])[y]


def per_class(score: Callable[..., float]) -> Witness:
    def compute(y: Codes, p: Array, w: Array | None) -> object:
        return [score((y == k).astype(int), p[:, k], sample_weight=w) for k in range(p.shape[1])]

    return compute


def averaged(average: str, multi_class: str) -> Witness:
    def compute(y: Codes, p: Array, w: Array | None) -> object:
        if p.shape[1] == 2:
            return sk.roc_auc_score(y, p[:, 1], sample_weight=w)
        return sk.roc_auc_score(y, p, average=average, multi_class=multi_class, sample_weight=w)

    return compute


def pr_trapezoid(y: Codes, p: Array, sample_weight: Array | None) -> float:
    precision, recall, _ = sk.precision_recall_curve(y, p, sample_weight=sample_weight)
    return float(sk.auc(recall, precision))


def brier(y: Codes, p: Array, w: Array | None) -> object:
    return sk.brier_score_loss(y, p[:, 1] if p.shape[1] == 2 else p, sample_weight=w)


def brier_skill(y: Codes, p: Array, w: Array | None) -> object:
    return sk.d2_brier_score(y, p, sample_weight=w)


def top_two(y: Codes, p: Array, w: Array | None) -> object:
    if p.shape[1] == 2:
        return 1.0
    return sk.top_k_accuracy_score(y, p, k=2, sample_weight=w, labels=np.arange(p.shape[1]))


WITNESSES: dict[str, Witness] = {
    "roc_auc": per_class(sk.roc_auc_score),
    "roc_auc_ovr_macro": averaged("macro", "ovr"),
    "roc_auc_ovr_weighted": averaged("weighted", "ovr"),
    "roc_auc_ovr_micro": lambda y, p, w: sk.roc_auc_score(one_hot(y, p), p, average="micro", sample_weight=w),
    "roc_auc_ovo_macro": averaged("macro", "ovo"),
    "roc_auc_ovo_weighted": averaged("weighted", "ovo"),
    "partial_roc_auc": per_class(
        lambda y, s, sample_weight: sk.roc_auc_score(y, s, max_fpr=0.1, sample_weight=sample_weight)
    ),
    "average_precision": per_class(sk.average_precision_score),
    "weighted_average_precision": lambda y, p, w: sk.average_precision_score(
        one_hot(y, p), p, average="weighted", sample_weight=w
    ),
    "macro_average_precision": lambda y, p, w: sk.average_precision_score(one_hot(y, p), p, sample_weight=w),
    "micro_average_precision": lambda y, p, w: sk.average_precision_score(
        one_hot(y, p), p, average="micro", sample_weight=w
    ),
    "class_reciprocal_rank": lambda y, p, w: sk.average_precision_score(
        one_hot(y, p), p, average="samples", sample_weight=w
    ),
    "class_rank_auc": lambda y, p, w: sk.roc_auc_score(one_hot(y, p), p, average="samples", sample_weight=w),
    "pr_auc_trapezoid": per_class(pr_trapezoid),
    "log_loss": lambda y, p, w: sk.log_loss(y, p, sample_weight=w, labels=np.arange(p.shape[1])),
    "brier_score": brier,
    "brier_skill_score": brier_skill,
    "top_k_accuracy": top_two,
    "d2_log_loss": lambda y, p, w: sk.d2_log_loss_score(y, p, sample_weight=w, labels=np.arange(p.shape[1])),
}
# Pairs of classes take no weights there.
UNWEIGHTED_THERE = {"roc_auc_ovo_macro", "roc_auc_ovo_weighted"}
# There ties go to the class with the higher index.
TIES_BROKEN_OTHERWISE = {"top_k_accuracy"}


def test_every_metric_it_has_is_compared() -> None:
    named = {metric.key for metric in catalogue().of_probabilities.metrics if "sklearn" in metric.card.elsewhere}
    assert named == set(WITNESSES)


ONE_BY_ONE = {"class_reciprocal_rank", "class_rank_auc"}


def cases() -> list[tuple[str, int, str, bool]]:
    everything = product(WITNESSES, (2, 4), ("distinct", "tied", "large"), (False, True))
    return [
        case
        for case in everything
        if not (case[3] and case[1] > 2 and case[0] in UNWEIGHTED_THERE)
        and not (case[3] and case[2] == "tied" and case[0] in TIES_BROKEN_OTHERWISE)
    ]


@each(("key", "classes", "kind", "weighted"), cases())
def test_values(key: str, classes: int, kind: str, weighted: bool) -> None:
    if kind == "tied":
        y, p = tied_problem(60 if key in ONE_BY_ONE else 400, classes, 3)
        p /= p.sum(axis=1, keepdims=True)
    else:
        # scikit-learn looks at samples one by one.
        sizes = (60, 120) if key in ONE_BY_ONE else (250, 2000)
        y, p = softmax_problem(sizes[kind == "large"], classes, 4)
    w = np.random.default_rng(5).gamma(2.0, size=y.size) if weighted else None
    expected = np.asarray(WITNESSES[key](y, p, w))
    if kind == "tied" and key in TIES_BROKEN_OTHERWISE:
        # With the classes in reverse order ours breaks ties as theirs.
        y, p = classes - 1 - y, p[:, ::-1]
    np.testing.assert_allclose(value(key, Scores(y, p, w)), expected, rtol=1e-10)


@pytest.mark.parametrize(("code", "there", "here"), [(0, 0.0, 1.0), (1, 1.0, 1.0), (2, 1.0, 0.0)])
def test_ties_among_the_most_probable_classes(code: int, there: float, here: float) -> None:
    """Of three equal classes two are named: the last two there, the first two here. The card says so."""
    y, p = np.array([code]), np.full((1, 3), 1 / 3)
    assert sk.top_k_accuracy_score(y, p, k=2, labels=[0, 1, 2]) == there
    assert float(value("top_k_accuracy", Scores(y, p), k=2)) == here
    assert "last" in catalogue().by_name["top_k_accuracy"].card.differs["sklearn"]


@pytest.mark.parametrize("seed", range(3))
def test_scores_that_are_no_probabilities(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 1], rng.integers(0, 2, 300)])
    s = np.round(rng.normal(scale=40.0, size=302) + 30.0 * y, seed)
    scores = Scores.of_scores(y, s)
    np.testing.assert_allclose(value("roc_auc", scores), [sk.roc_auc_score(y, s)] * 2, rtol=1e-12)
    np.testing.assert_allclose(value("average_precision", scores)[1], sk.average_precision_score(y, s), rtol=1e-12)
    np.testing.assert_allclose(value("average_precision", scores)[0], sk.average_precision_score(1 - y, -s), rtol=1e-12)


def test_log_loss_of_ruled_out_classes_is_clipped_as_there() -> None:
    y, p = np.array([0, 1, 1]), np.array([[1.0, 0.0], [1.0, 0.0], [0.25, 0.75]])
    np.testing.assert_allclose(value("log_loss", Scores(y, p)), sk.log_loss(y, p), rtol=1e-12)
    assert np.isinf(value("log_loss", Scores(y, p), clip=0.0))


def test_infinite_losses_that_weigh_nothing_change_nothing() -> None:
    y, p = np.array([0, 1, 1, 0]), np.array([[0.9, 0.1], [1.0, 0.0], [0.25, 0.75], [0.6, 0.4]])
    used, weights = np.array([0, 2, 3]), np.array([1.0, 0.0, 2.0, 0.5])
    some, whole = Scores(y[used], p[used], weights[used]), Scores(y, p, np.stack([weights, weights + 1.0]))
    found = value("log_loss", whole, clip=0.0)
    assert found[0] == value("log_loss", some, clip=0.0)
    assert np.isinf(found[1])
    lines = [
        Influences(scores).of(log_loss, parameters={"clip": 0.0}) for scores in (some, whole.with_weights(weights))
    ]
    assert lines[0] is not None
    assert lines[1] is not None
    assert lines[1].variance == pytest.approx(lines[0].variance, rel=1e-14)
    assert lines[1].variance > 0.0


@pytest.mark.parametrize("exponent", [3, 6, 10, 14])
@pytest.mark.parametrize("column", [0, 1])
def test_losses_of_nearly_certain_models(exponent: int, column: int) -> None:
    """Losses far below the rounding of probabilities near 1, whichever column came first and the other followed
    from."""
    rng = np.random.default_rng(exponent)
    y = np.arange(6000) % 2
    doubt = rng.random(6000) * 10.0**-exponent
    right = np.where(y == column, 1.0 - doubt, doubt)
    p = np.column_stack([right, 1.0 - right] if column == 0 else [1.0 - right, right])
    scores = Scores(y, p)
    # There the losses of both columns are averaged, one of which has lost digits.
    np.testing.assert_allclose(value("brier_score", scores), sk.brier_score_loss(y, p[:, 1]), rtol=1e-10, atol=1e-18)
    np.testing.assert_allclose(value("brier_score", scores), np.mean((y - p[:, 1]) ** 2), rtol=1e-10)
    np.testing.assert_allclose(value("log_loss", scores), sk.log_loss(y, p), rtol=1e-10, atol=2.3e-16)
    phi = [phi_of(p[y == code, code]).mean() for code in (0, 1)]
    np.testing.assert_allclose(value("mean_phi", scores), phi, rtol=1e-10)
