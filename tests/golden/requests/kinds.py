"""Inputs that are more than a matrix of classes: reports, comparisons, gates, leaderboards, and what is refused."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.golden.calls import Call, Json, compute, get, keep, post, put

_N = 120


def _bit(sample: int, label: int, seed: int, share: int) -> int:
    """1 in about so many of a hundred, the same for ever."""
    return int((sample * 37 + label * 53 + seed * 29 + sample * sample * (label + 2)) % 101 < share)


def _labels(seed: int, **members: Any) -> Json:
    """Four labels, the last one rare, and answers that are wrong now and then."""
    truth = [[_bit(i, label, 0, (50, 35, 20, 6)[label]) for label in range(4)] for i in range(_N)]
    said = [[value ^ _bit(i, label, seed, 12 * seed) for label, value in enumerate(row)] for i, row in enumerate(truth)]
    names = ["cat", "dog", "bird", "newt"]
    return {
        "kind": "multilabel",
        "labels": names,
        "y_true": truth,
        "y_pred": said,
        "sample_ids": [*range(_N)],
        **members,
    }


def _label_scores(seed: int) -> Json:
    source = _labels(seed)
    said = source.pop("y_pred")
    scores = [
        [(20 + 45 * value + (i * 7 + 13 * label) % 30) / 100 for label, value in enumerate(row)]
        for i, row in enumerate(said)
    ]
    return {**source, "probabilities": scores, "thresholds": [0.5, 0.5, 0.4, 0.45]}


def _clusters(seed: int, **members: Any) -> Json:
    """Three classes, mostly in a cluster of their own."""
    classes = [(0, 0, 0, 1, 1, 2)[i % 6] for i in range(_N)]
    found = [(code + _bit(i, code, seed, 10 * seed)) % 3 for i, code in enumerate(classes)]
    return {"kind": "clustering", "y_true": classes, "y_pred": found, "sample_ids": [*range(_N)], **members}


def _points(seed: int) -> Json:
    found = _clusters(seed)
    places = [[code + (i * 17 % 23) / 30, (i * 29 % 31) / 20 - code] for i, code in enumerate(found["y_true"])]
    return {**found, "features": places}


def _ranking(seed: int, **members: Any) -> Json:
    """Fifteen queries of eight items."""
    relevant = [_bit(i, 0, 0, 30) * (1 + i % 3) for i in range(_N)]
    scores = [value + ((i * 31 + seed * 17) % 41) / (30 / seed) for i, value in enumerate(relevant)]
    return {
        "kind": "ranking",
        "query_ids": [i // 8 for i in range(_N)],
        "relevance": relevant,
        "scores": [round(score, 4) for score in scores],
        "cutoffs": [3, 5, 10],
        **members,
    }


def _regions(seed: int, **members: Any) -> Json:
    """Small regions of one class and large ones of another, some of them empty."""
    there = [0 if i % 17 == 3 else 5 + (i * i) % 40 + 200 * (i % 3 == 0) for i in range(_N)]
    common = [size * (95 - (i * 7 * seed) % (20 * seed)) // 100 for i, size in enumerate(there)]
    said = [both + (i * 11) % (9 * seed) for i, both in enumerate(common)]
    return {
        "kind": "sets",
        "n_true": there,
        "n_predicted": said,
        "n_common": common,
        "item_classes": ["road" if i % 3 == 0 else "sign" for i in range(_N)],
        "sample_ids": [*range(_N)],
        **members,
    }


def _answers(seed: int) -> Json:
    words = ["in", "the", "year", "1066", "paris", "of", "france", "no"]
    gold = [[words[(i * step) % 8] for step in range(1, 1 + i % 4)] for i in range(40)]
    said = [[*row[: len(row) - (i * seed) % 2], *words[i % 3 : i % 3 + (i * seed) % 3]] for i, row in enumerate(gold)]
    return {"kind": "sets", "y_true": gold, "y_pred": said}


class _Kind(NamedTuple):
    """Two runs of a kind, and what is asked of them."""

    runs: tuple[Json, Json]
    metrics: tuple[str, ...]
    figure: str


_KINDS: Mapping[str, _Kind] = {
    "multilabel": _Kind(
        (_labels(1), _labels(2)),
        ("h_mean", "macro_f1", "subset_accuracy", "recall@*", "gps(recall@*, precision@cat)"),
        "per_class",
    ),
    "clustering": _Kind((_clusters(1), _clusters(2)), ("adjusted_rand", "v_measure", "purity"), "contingency"),
    "ranking": _Kind((_ranking(1), _ranking(2)), ("ndcg_at_k(k=5)", "mean_average_precision"), "per_query"),
    "sets": _Kind(
        (_regions(1), _regions(2)),
        ("samples_jaccard", "pooled_jaccard", "class_jaccard@*", "mean_class_jaccard"),
        "per_item",
    ),
}


def _asked_of(name: str, kind: _Kind) -> list[Call]:
    """Kept, read, compared, judged and ranked."""
    first, second = (f"{name}-{number}" for number in (1, 2))
    floor = {"metric": kind.metrics[0], "min": 0.3}
    beside = {"metric": kind.metrics[0], "not_worse_than": "baseline", "margin": 0.05}
    return [
        *(
            keep(run, source, run, name, options={"seed": 1})
            for run, source in zip((first, second), kind.runs, strict=True)
        ),
        get(f"{name}-read", f"/v1/evaluations/${first}"),
        get(f"{name}-listed", "/v1/evaluations", dataset=name),
        compute(f"{name}-everything", kind.runs[0], metrics=[*kind.metrics], intervals="all", seed=1, draws=300),
        post(
            f"{name}-compared",
            "/v1/comparisons",
            {"evaluations": [f"${first}", f"${second}"], "metrics": [*kind.metrics], "draws": 200, "seed": 1},
        ),
        put(f"{name}-gate", f"/v1/gates/{name}", {"rules": [floor, beside]}),
        post(f"{name}-check", f"/v1/gates/{name}/checks", {"evaluation": f"${first}", "baseline": f"${second}"}),
        get(f"{name}-ranked", "/v1/leaderboard", dataset=name, metric=kind.metrics[0], seed=1),
        get(f"{name}-ranked-as-usual", "/v1/leaderboard", dataset=name, seed=1),
        get(f"{name}-figure", f"/v1/evaluations/${first}/plots/{kind.figure}.json"),
    ]


_REFUSED: Mapping[str, Json] = {
    "labels-of-other-length": {"kind": "multilabel", "y_true": [["a"], ["b"]], "y_pred": [["a"]]},
    "label-twice": {"kind": "multilabel", "y_true": [["a", "a"]], "y_pred": [["a"]]},
    "ragged-contingency": {"kind": "clustering", "contingency": [[1, 2], [3]]},
    "no-clusters": {"kind": "clustering", "y_true": [1, 2]},
    "scores-and-ranks": _ranking(1, ranks=[1] * _N),
    "negative-relevance": _ranking(1, relevance=[-1.0] * _N),
    "more-common-than-there": _regions(1, n_common=[1000] * _N),
    "sizes-and-lists": {**_regions(1), "y_true": [["a"]] * _N, "y_pred": [["a"]] * _N},
    "half-of-the-sizes": {"kind": "sets", "n_true": [1, 2], "n_common": [1, 2]},
    "tokens-that-are-none": {"kind": "sets", "y_true": [["a", 1.5]], "y_pred": [["a"]]},
    "exact-that-is-not": _regions(1, exact=[True] * _N),
}

_GROUPED = [
    *(
        keep(f"grouped-{seed}", _labels(seed, group_ids=[i // 4 for i in range(_N)]), f"grouped-{seed}", "groups")
        for seed in (1, 2)
    ),
    post(
        "grouped-compared",
        "/v1/comparisons",
        {"evaluations": ["$grouped-1", "$grouped-2"], "metrics": ["h_mean", "samples_f1"], "draws": 200, "seed": 1},
    ),
]

KINDS = [
    *(call for name, kind in _KINDS.items() for call in _asked_of(name, kind)),
    *_GROUPED,
    compute("labels-with-probabilities", _label_scores(1), seed=1, metrics=["roc_auc@*", "coverage_error"]),
    compute("labels-in-groups", _labels(1, group_ids=[i // 4 for i in range(_N)]), seed=1),
    compute("labels-with-weights", _labels(1, sample_weight=[1 + i % 3 for i in range(_N)]), seed=1),
    compute("points", _points(1), seed=1),
    compute("table", {"kind": "clustering", "contingency": [[30, 2, 0], [4, 20, 9]], "classes": ["a", "b"]}, seed=1),
    compute("answers", _answers(1), seed=1, metrics=["token_f1", "exact_match"]),
    compute("answers-in-groups", {**_answers(1), "group_ids": [i // 5 for i in range(40)]}, seed=1),
    *(compute(f"refused-{name}", source) for name, source in _REFUSED.items()),
]
