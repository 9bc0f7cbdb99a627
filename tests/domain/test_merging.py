"""Several inputs as one: what one request of everything gives, whatever way it is split, and what is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from app.domain.errors import (
    DomainError,
    IncomparableLabels,
    IncomparableRuns,
    InvalidInput,
    NoSamples,
    NotForKind,
)
from app.domain.inputs.classified import Predictions, Probabilities, Scores
from app.domain.inputs.clustering import Clustering
from app.domain.inputs.confusion import BinaryCounts, ConfusionMatrix
from app.domain.inputs.content import Content
from app.domain.inputs.folds import Folds
from app.domain.inputs.kind import Input
from app.domain.inputs.kinds import KINDS
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.merging import merged, together
from app.domain.inputs.multilabel import Multilabel
from app.domain.inputs.ranking import Ranking
from app.domain.inputs.sets import Sets

N = 60
RNG = np.random.default_rng(7)
IDS = RNG.permutation(N)
BESIDE = {
    "sample_ids": IDS,
    "sample_weight": RNG.random(N).round(3) + 0.1,
    "group_ids": np.array([f"patient {one}" for one in RNG.integers(0, 9, N)]),
}
CLASSES = np.array(["b", "a", "c"])
TRUE, SAID = RNG.integers(0, 3, N), RNG.integers(0, 3, N)
# Every part has every class.
TRUE[:12] = np.tile([0, 1, 2], 4)
SAID[:12] = np.tile([0, 1, 2], 4)
SHARES = RNG.dirichlet(np.ones(3), N)
MEMBERS, FOUND = RNG.random((N, 4)) < 0.4, RNG.random((N, 4)) < 0.5
SIZES = RNG.integers(0, 9, (N, 2))
PARTS = [np.sort(np.r_[0:6, 12:30]), np.r_[6:12, 30:N]]

WHOLES: dict[str, tuple[type[Input], Mapping[str, Any], Mapping[str, Any]]] = {
    "predictions": (Predictions, {"y_true": CLASSES[TRUE], "y_pred": CLASSES[SAID], "sample_ids": IDS}, {}),
    "integers": (Predictions, {"y_true": 3 * TRUE, "y_pred": 3 * SAID, **BESIDE}, {}),
    "declared": (
        Predictions,
        {"y_true": CLASSES[TRUE], "y_pred": CLASSES[SAID], **BESIDE},
        {"labels": ["c", "b", "a"]},
    ),
    "counts": (Predictions, {"y_true": CLASSES[TRUE], "y_pred": CLASSES[SAID]}, {}),
    "ignored": (Predictions, {"y_true": CLASSES[TRUE], "y_pred": CLASSES[SAID % 2], **BESIDE}, {"ignore": ["c"]}),
    "probabilities": (Probabilities, {"y_true": CLASSES[TRUE], "probabilities": SHARES, **BESIDE}, {}),
    "renormalized": (
        Probabilities,
        {"y_true": CLASSES[TRUE], "probabilities": SHARES * np.where(IDS % 3, 1.0, 2.0)[:, None], "sample_ids": IDS},
        {"renormalize": True, "sum_tolerance": 1e-5},
    ),
    "rounded": (Probabilities, {"y_true": CLASSES[TRUE], "probabilities": np.round(SHARES, 3), **BESIDE}, {}),
    "threshold": (
        Probabilities,
        {"y_true": TRUE % 2, "probabilities": np.stack([SHARES[:, 0], 1.0 - SHARES[:, 0]], axis=1)},
        {"threshold": 0.7, "positive": 0},
    ),
    "scores": (Scores, {"y_true": TRUE % 2, "scores": RNG.normal(size=N), **BESIDE}, {}),
    "scores of classes": (Scores, {"y_true": CLASSES[TRUE], "scores": RNG.normal(size=(N, 3))}, {}),
    "multilabel": (Multilabel, {"y_true": MEMBERS, "y_pred": FOUND, **BESIDE}, {"labels": ["d", "b", "c", "a"]}),
    "multilabel probabilities": (
        Multilabel,
        {"y_true": MEMBERS, "probabilities": RNG.random((N, 4)), "sample_ids": IDS},
        {"thresholds": [0.2, 0.5, 0.6, 0.3]},
    ),
    "clustering": (Clustering, {"y_true": CLASSES[TRUE], "y_pred": SAID, "sample_ids": IDS}, {}),
    "clustering counts": (Clustering, {"y_true": CLASSES[TRUE], "y_pred": SAID}, {}),
    "points": (Clustering, {"y_pred": SAID, "features": RNG.normal(size=(N, 2))}, {}),
    "sets": (
        Sets,
        {
            "n_true": SIZES[:, 0],
            "n_predicted": SIZES[:, 1],
            "n_common": SIZES.min(axis=1),
            "item_classes": CLASSES[TRUE],
            "sample_ids": IDS,
        },
        {},
    ),
    "ranking": (
        Ranking,
        {
            "query_ids": np.arange(N) // 6 * 7 % 11,
            "relevance": np.where(IDS % 7, IDS % 4, np.nan).astype(float),
            "scores": np.where(IDS % 5 | (IDS % 7 == 0), RNG.integers(0, 5, N), np.nan).astype(float),
        },
        {"cutoffs": [2, 3], "relevant_from": 2.0},
    ),
}


def read(kind: type[Input], columns: Mapping[str, Any], options: Mapping[str, Any], rows: Any) -> MatrixInput:
    return kind(**options, **{name: column[rows] for name, column in columns.items()}).read("/input")


def told(source: Any) -> dict[str, Any]:
    """Fields of an input and of its samples; arrays as type, shape and bytes."""
    found: dict[str, Any] = {}
    for one in fields(source):
        value = getattr(source, one.name)
        if one.name == "samples" and value is not None:
            found |= told(value)
        else:
            found[one.name] = (
                (value.dtype.kind, value.shape, value.tolist()) if isinstance(value, np.ndarray) else value
            )
    return found


@pytest.mark.parametrize("name", WHOLES)
def test_parts_are_the_whole_again(name: str) -> None:
    """Of 50 random splits, bit for bit; the six judgements of a query stay together, and each part has every class."""
    kind, columns, options = WHOLES[name]
    rng = np.random.default_rng(0)
    for _ in range(50):
        side = np.r_[0, 1, rng.integers(0, 2, N // 6 - 2)]
        parts = [np.arange(N).reshape(-1, 6)[side == one].ravel() for one in (0, 1)]
        whole = told(read(kind, columns, options, np.concatenate(parts)))
        assert told(merged([read(kind, columns, options, rows) for rows in parts])) == whole


def test_every_kind_is_looked_at() -> None:
    assert {kind for kind, *_ in WHOLES.values()} == {*KINDS.values()} - {
        Folds,
        KINDS["confusion_matrix"],
        KINDS["binary_counts"],
    }


def test_random_splits_of_predictions_in_many_parts_and_merges_of_merges() -> None:
    kind, columns, options = WHOLES["declared"]
    rng = np.random.default_rng(3)
    for _ in range(10):
        parts = np.split(rng.permutation(N), np.sort(rng.choice(np.arange(1, N), 4, replace=False)))
        pieces = [read(kind, columns, options, rows) for rows in parts]
        whole = told(read(kind, columns, options, np.concatenate(parts)))
        assert told(merged(pieces)) == whole
        assert told(merged([merged(pieces[:2]), pieces[2], merged(pieces[3:])])) == whole


def test_labels_of_all_are_those_of_the_whole() -> None:
    columns = {"y_true": np.array([2, 10, 10, 9]), "y_pred": np.array([10, 2, 9, 10]), "sample_ids": np.arange(4)}
    found = merged([read(Predictions, columns, {}, slice(2)), read(Predictions, columns, {}, slice(2, 4))])
    assert found.labels == ("2", "9", "10")
    assert told(found) == told(read(Predictions, columns, {}, slice(4)))


def test_of_equal_outputs_the_first_in_the_order_of_all_decides() -> None:
    columns = {"y_true": CLASSES[TRUE[:4]], "probabilities": np.tile([0.4, 0.4, 0.2], (4, 1)), "sample_ids": IDS[:4]}
    turned = {**columns, "probabilities": columns["probabilities"][:, ::-1]}
    first = read(Probabilities, columns, {"labels": ["c", "b", "a"]}, slice(2))
    second = read(Probabilities, turned, {"labels": ["a", "b", "c"]}, slice(2, 4))
    assert told(merged([first, second])) == told(read(Probabilities, columns, {"labels": ["c", "b", "a"]}, slice(4)))


def test_matrices_are_added_with_their_labels_in_one_order() -> None:
    first = ConfusionMatrix(matrix=[[5, 1], [2, 7]], labels=["well", "ill"]).read("")
    second = ConfusionMatrix(matrix=[[10, 20], [30, 40]], labels=["ill", "well"], positive="ill").read("")
    found = merged([first, second])
    assert (found.labels, found.positive) == (("well", "ill"), 1)
    assert found.counts.tolist() == [[45, 31], [22, 17]]
    assert found.counts.dtype.kind == "i"


def test_random_splits_of_matrices_are_the_whole_again() -> None:
    """Of 50; a class is missing in one part of each."""
    rng = np.random.default_rng(5)
    whole = np.vstack([rng.integers(1, 9, (3, 4)), [0, 1, 0, 0]])
    names = np.array(["d", "a", "c", "b"])
    for _ in range(50):
        first = rng.binomial(whole, rng.uniform(0.2, 0.8))
        parts = [first, whole - first]
        orders = [rng.permutation(4) for _ in parts]
        read_parts = [
            ConfusionMatrix(matrix=part[np.ix_(order, order)].tolist(), labels=names[order].tolist()).read("")
            for part, order in zip(parts, orders, strict=True)
        ]
        place = np.array([list(names).index(label) for label in merged(read_parts).labels])
        assert merged(read_parts).counts.tolist() == whole[np.ix_(place, place)].tolist()
        half = BinaryCounts(tp=int(first[0, 0]), fn=3, fp=int(first[0, 1]), tn=2).read("")
        rest = BinaryCounts(tp=int(parts[1][0, 0]), fn=0, fp=int(parts[1][0, 1]), tn=0).read("")
        at_once = BinaryCounts(tp=int(whole[0, 0]), fn=3, fp=int(whole[0, 1]), tn=2).read("")
        assert told(merged([half, rest])) == told(at_once)


def test_matrices_of_classes_by_decisions_are_added() -> None:
    parts = [
        ConfusionMatrix(
            matrix=[[1, 2, 3], [4, 5, 6]], labels=["well", "ill"], decisions=["wait", "test", "treat"]
        ).read("")
        for _ in range(3)
    ]
    assert merged(parts).counts.tolist() == [[3, 6, 9], [12, 15, 18]]


@pytest.mark.parametrize("name", ["counts", "integers", "probabilities", "threshold", "scores", "scores of classes"])
def test_runs_as_folds_are_the_kind_folds(name: str) -> None:
    kind, columns, options = WHOLES[name]
    parts = [read(kind, columns, options, rows) for rows in PARTS]
    folds = [kind(**options, **{n: column[rows] for n, column in columns.items()}) for rows in PARTS]
    assert told(merged(parts, as_folds=True)) == told(Folds(folds=folds).read(""))


def test_samples_of_all_runs_may_be_the_same_ones_in_folds() -> None:
    kind, columns, options = WHOLES["predictions"]
    run = read(kind, columns, options, slice(None))
    found = merged([run, run], as_folds=True)
    assert found.facts["n_groups"] == N


@pytest.mark.parametrize("name", ["predictions", "counts", "probabilities", "multilabel"])
def test_attributes_stay_with_their_samples(name: str) -> None:
    kind, columns, options = WHOLES[name]
    known: list[Any] = [["f", "m", None, True, 1][one] for one in RNG.integers(0, 5, N)]

    def some(rows: Any) -> MatrixInput:
        own = {"site": [known[row] for row in rows.tolist()], "age": list(map(float, rows + 0.5))}
        return read(kind, columns, {**options, "attributes": own}, rows)

    def attributes(source: MatrixInput) -> dict[str, Any]:
        assert source.samples is not None
        assert source.samples.attributes is not None
        return {n: (one.values, one.codes.tolist()) for n, one in source.samples.attributes.by_name.items()}

    found, whole = merged([some(rows) for rows in PARTS]), some(np.concatenate(PARTS))
    assert attributes(found) == attributes(whole)
    assert found.counts.tolist() == whole.counts.tolist()
    assert isinstance(refused(some(PARTS[0]), read(kind, columns, options, PARTS[1])), IncomparableRuns)


def test_attributes_of_queries_stay_with_them() -> None:
    kind, columns, options = WHOLES["ranking"]
    regions = np.array(["north", "south", "east"])[columns["query_ids"] % 3]

    def some(rows: Any) -> MatrixInput:
        return read(kind, columns, {**options, "attributes": {"region": regions[rows].tolist()}}, rows)

    parts = [np.arange(30, N), np.arange(30)]

    def facts(source: MatrixInput) -> Any:
        assert source.samples is not None
        assert source.samples.ids is not None
        assert source.samples.attributes is not None
        region = source.samples.attributes.by_name["region"]
        return source.samples.ids.tolist(), region.values, region.codes.tolist()

    assert facts(merged([some(rows) for rows in parts])) == facts(some(np.concatenate(parts)))


def refused(*parts: MatrixInput, as_folds: bool = False) -> DomainError:
    with pytest.raises(DomainError) as error:
        merged(parts, as_folds=as_folds)
    return error.value


def of(name: str, rows: Any = PARTS[0], without: Sequence[str] = (), **options: Any) -> MatrixInput:
    kind, columns, usual = WHOLES[name]
    return read(kind, {n: column for n, column in columns.items() if n not in without}, {**usual, **options}, rows)


def test_a_sample_that_is_there_twice_is_refused_with_its_places() -> None:
    error = refused(of("predictions"), of("predictions", np.r_[30:40, 3, 20]))
    assert isinstance(error, InvalidInput)
    fault = error.faults[0]
    assert (fault.pointer, fault.code) == ("/evaluations/1", "duplicate_sample_id")
    assert fault.detail == (
        f"expected ids of samples that differ, got 2 that came before, the first '{IDS[3]}': sample 10 here, "
        "sample 3 of evaluation 0 (both counted from 0)"
    )


def test_a_sample_that_is_there_twice_is_refused_beside_parts_without_ids() -> None:
    for other in (of("counts", PARTS[1]), of("integers", PARTS[1], ["sample_ids", "sample_weight", "group_ids"])):
        error = refused(of("predictions"), other, of("predictions", np.r_[30:40, 3, 20]))
        assert isinstance(error, InvalidInput)
        assert (error.faults[0].pointer, error.faults[0].code) == ("/evaluations/2", "duplicate_sample_id")
        assert "got 2 that came before" in error.faults[0].detail
        assert error.faults[0].detail.endswith("sample 3 of evaluation 0 (both counted from 0)")


def test_refusals_say_what_is_there_and_what_is_not() -> None:
    error = refused(of("integers"), of("integers", PARTS[1], ["sample_weight"]))
    assert error.detail == "expected sample_weight in all or in none as in the first evaluation, some, got none"
    error = refused(of("scores"), of("scores", PARTS[1], threshold=0.0))
    assert error.detail == "expected the threshold as in the first evaluation, none, got 0.0"


def test_what_cannot_be_one_is_refused() -> None:
    rates = ConfusionMatrix(matrix=[[0.9, 0.1], [0.2, 0.8]], normalized=True).read("")
    plain = ConfusionMatrix(matrix=[[9, 1], [2, 8]]).read("")
    assert isinstance(refused(of("predictions"), of("probabilities")), IncomparableRuns)
    assert isinstance(refused(of("integers"), of("integers", PARTS[1], ["group_ids"])), IncomparableRuns)
    assert isinstance(refused(of("integers"), of("integers", PARTS[1], ["sample_weight"])), IncomparableRuns)
    assert isinstance(refused(of("threshold"), of("threshold", PARTS[1], threshold=0.6)), IncomparableRuns)
    assert isinstance(refused(of("threshold"), of("threshold", PARTS[1], positive=1)), IncomparableRuns)
    assert isinstance(refused(of("ranking", slice(30)), of("ranking", slice(30, N), cutoffs=[3])), IncomparableRuns)
    others = replace(of("probabilities", PARTS[1]), labels=("a", "b", "x"))
    assert isinstance(refused(of("probabilities"), others), IncomparableLabels)
    assert isinstance(refused(plain, rates), InvalidInput)
    assert isinstance(refused(of("scores"), replace(of("scores", PARTS[1]), samples=None)), NoSamples)
    assert isinstance(refused(of("sets"), of("sets", PARTS[1]), as_folds=True), NotForKind)
    folds = merged([plain, plain], as_folds=True)
    assert isinstance(refused(folds, folds), NotForKind)


def test_counts_of_data_by_reference_add_up() -> None:
    """A day's state is its matrix: predictions need no more; what needs samples is refused with its place."""
    first, second = (replace(predictions(rows), facts={"data": {"digest": str(day)}}) for day, rows in enumerate(PARTS))
    whole = merged([first, second])
    assert whole.counts.tolist() == predictions(np.arange(N)).counts.tolist()
    assert (whole.labels, whole.content, whole.facts) == (first.labels, Content.counts, {})
    assert together([first, second]).counts.tolist() == whole.counts.tolist()
    scored = replace(second, kind="probabilities")
    with pytest.raises(NoSamples, match="named by a reference"):
        merged([scored, scored])


def predictions(rows: Any) -> MatrixInput:
    """Those rows as they are kept of data by reference: counted."""
    read = Predictions(y_true=CLASSES[TRUE][rows].tolist(), y_pred=CLASSES[SAID][rows].tolist()).read("/input")
    return replace(read, samples=None)
