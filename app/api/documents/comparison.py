"""Comparisons as documents: which values are better, worse, the same or cannot be told, and then the numbers."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from app.api.documents.document import (
    PAGE,
    Cell,
    Column,
    Document,
    Estimate,
    Figures,
    Group,
    Json,
    Kind,
    Link,
    MetricName,
    Name,
    Said,
    Section,
    Table,
    Tag,
    Words,
)
from app.api.documents.reading import interval_words, naming
from app.domain.catalogue import spoken
from app.domain.division import slice_text
from app.domain.wording import (
    MOST_NAMED,
    chance,
    dataset_name,
    p_said,
    p_value,
    percent,
    rounded,
    run_name,
    run_names,
    sentence,
    whole,
)
from app.domain.wording import PAGE as ON_PAGES
from app.domain.wording import names as listed_names

BETTER, WORSE, EQUAL, OPEN = "Better", "Worse", "The same", "Cannot tell"
LITTLE_BETTER, LITTLE_WORSE = "Better, too little to matter", "Worse, too little to matter"
# By the verdict, and whether too little to matter: the outcome in words, its colour on a page and its sign in a text.
_OUTCOMES: Final = {
    ("better", False): (BETTER, "pass", "better"),
    ("worse", False): (WORSE, "fail", "worse"),
    ("better", True): (LITTLE_BETTER, "note", "better, little"),
    ("worse", True): (LITTLE_WORSE, "note", "worse, little"),
    ("same", False): (EQUAL, "note", "same"),
    ("undecided", False): (OPEN, "inconclusive", "open"),
}
# Rows of a text, and those that are looked at first elsewhere.
_SHORT, _FIRST = 30, 40
_MOST_DISAGREEMENTS: Final = 6
_PAIR: Final = 2
_OF_CLASS: Final = re.compile(r"\w+(\([^()]*\))?@")
_HEADS: Final = (
    *("metric", "a", "b", "value_a", "value_b", "difference", "low", "high"),
    *("p_value", "p_adjusted", "probability_a_better", "probability_equivalent"),
)


def comparison_document(answer: Json) -> Document:
    """Return the document of a comparison of runs or of models, which is given as it is answered in JSON."""
    return _of_models(answer) if "average_ranks" in answer else _of_runs(answer)


def outcome(pair: Json) -> str:
    """Return the outcome of a pair in words."""
    return _outcome(pair)[0]


def _outcome(pair: Json) -> tuple[str, str, str]:
    return _OUTCOMES[pair["verdict"], bool(pair.get("too_little_to_matter"))]


def outcomes(answer: Json) -> dict[str, list[str]]:
    """Return the metrics of two runs by their outcome."""
    found: dict[str, list[str]] = {word: [] for word, _, _ in _OUTCOMES.values()}
    for name, metric in answer["metrics"].items():
        found[outcome(metric["differences"][0])].append(name)
    return found


def is_of_class(key: str) -> bool:
    """Return whether a value, as it is named, is a metric of one class."""
    return _OF_CLASS.match(key) is not None


def _result(answer: Json) -> tuple[str, ...]:
    """Return the difference of two runs in a sentence or four."""
    found = outcomes(answer)
    parts: list[str] = ["The metrics disagree. "] if found[BETTER] and found[WORSE] else []
    said = [(word, names) for word, names in found.items() if names]
    for place, (word, names) in enumerate(said):
        parts.append(f"{' ' if place else ''}{word}: ")
        for at, name in enumerate(names[:MOST_NAMED]):
            parts += [", ", MetricName(name)] if at else [MetricName(name)]
        parts.append(f" and {len(names) - MOST_NAMED} more." if len(names) > MOST_NAMED else ".")
    return tuple(parts)


def disagreements(answer: Json) -> list[Json]:
    """Return the metrics that prefer different runs where each side has a difference beyond chance."""

    def settled(name: str, pair: Sequence[str]) -> bool:
        return any(
            one["verdict"] in ("better", "worse") and {one["a"], one["b"]} == {*pair}
            for one in answer["metrics"][name]["differences"]
        )

    return [
        one
        for one in answer["disagreements"]
        if all(any(settled(name, one["prefer"]) for name in side["metrics"]) for side in one["prefers"])
    ]


def best_said(answer: Json, key: str, task: str | None = None) -> str:
    """Return which run is the best by a metric, and which may be as good; else by how much it is ahead."""
    metric, called = answer["metrics"][key], run_names(answer["evaluations"])
    name = spoken(key, task)
    order = in_order(metric)
    best, second = order[:2]
    if metric["values"][best] is None:
        return f"{sentence(name)} has no value in any of the runs."
    said = f"{called[best]} is best by {name}, {ON_PAGES.value(metric['values'][best])}"
    if metric["may_be_best"] is None:
        return f"{said}; which others may be as good is not known."
    ids, others = [str(one["id"]) for one in answer["evaluations"]], may_be_as_good(metric)
    alike = [called[place] for place in order[1:] if ids[place] in others]
    if alike:
        return f"{said}; {listed_names(alike)} may be as good."
    between = [one for one in metric["differences"] if {str(one["a"]), str(one["b"])} == {ids[best], ids[second]}]
    ahead = [turned(one, ids[best]) for one in between]
    by = [ON_PAGES.said(one["difference"], one["low"], one["high"], sign=True) for one in ahead]
    rest = "" if len(called) == _PAIR else " No other may be as good."
    return f"{said}, ahead of {called[second]}{''.join(f' by {one}' for one in by)}.{rest}"


def in_order(metric: Json) -> list[int]:
    """Return the places of the runs, the best by a metric first, those without a value last."""
    ranks = metric["ranks"]
    return sorted(range(len(ranks)), key=lambda place: ranks[place] or len(ranks) + 1)


def names_by_id(answer: Json, names: Sequence[str]) -> dict[str, str]:
    """Return what the runs of a comparison are called, by their ids."""
    return dict(zip((run["id"] for run in answer["evaluations"]), names, strict=True))


def may_be_as_good(metric: Json) -> set[str]:
    """Return the runs that may be as good as the best: those among which the best is with the level of the comparison,
    which looks on one side only, and those whose difference to the best run has limits that hold 0.
    """
    best, found = str(metric["best"]), {str(one) for one in metric["may_be_best"] or ()}
    for one in metric["differences"]:
        pair = {str(one["a"]), str(one["b"])}
        low, high = one["low"], one["high"]
        # One end alone is missing where nothing bounds it.
        limited = low is not None or high is not None
        if best in pair and limited and (low is None or low <= 0.0) and (high is None or high >= 0.0):
            found |= pair
    return found - {best}


def other_way_round(answer: Json) -> Json:
    """Return a comparison of two runs as one of the second against the first."""
    first, second = answer["evaluations"]
    metrics = {
        key: {**one, "values": one["values"][::-1], "differences": [turned(one["differences"][0], second["id"])]}
        for key, one in answer["metrics"].items()
    }
    return {**answer, "evaluations": [second, first], "metrics": metrics}


# --- runs ------------------------------------------------------------------------------------------------------------


def _of_runs(answer: Json) -> Document:
    runs, design = answer["evaluations"], answer["design"]
    names, pair, level = run_names(runs), len(runs) == _PAIR, percent(design["level"], None)
    datasets = list(dict.fromkeys(dataset_name(run["dataset"]) for run in runs))
    baseline = next((name for run, name in zip(runs, names, strict=True) if run["id"] == answer.get("baseline_id")), "")
    role = " (baseline)" if pair and answer.get("baseline_id") == runs[1]["id"] else ""
    paired = f"{'Paired' if design['paired'] else 'Not paired'}: {design['reason']}."
    said = [*(answer.get("findings") or ()), *([] if pair else disagreements(answer)[:_MOST_DISAGREEMENTS])]
    against = f"to the baseline {baseline}" if baseline else "to the best"
    headline = next(iter(answer["metrics"]))
    method = sentence(design["multiplicity"]["method"])
    lede = f"{names[0]} less {names[1]}, with" if pair else f"The runs in order, their differences {against} with"
    return Document(
        title=(Name(names[0]), " against ", Name(names[1]), role) if pair else f"{len(runs)} runs",
        on=("on ", Name(datasets[0])) if len(datasets) == 1 else f"on {len(datasets)} datasets",
        facts=[("", f"{level} intervals"), *([] if pair or not baseline else [("", f"baseline {baseline}")])],
        identifier=answer["id"],
        opening=[
            Said("result", _result(answer)) if pair else Said("result", best_said(answer, headline), only=PAGE),
            Said("design", f'{paired} "Same" means a difference of at most {design["rope"]:g}.'),
            *(Said(one.get("severity", "note"), naming(_told(one, answer), answer["metrics"])) for one in said),
        ],
        sections=[
            Section(
                "differences",
                "Differences",
                [
                    _differences(answer) if pair else _orders(answer, names),
                    *(Said("note", naming(sentence(note), answer["metrics"])) for note in answer["notes"]),
                ],
                f"{lede} {level} intervals; p is adjusted ({method}). The chances are those "
                f"that {'the first' if pair else 'a run'} is better, the same, or worse.",
            ),
            *_causes(answer, names),
            *_slices(answer, names),
            Section("figures", "Figures", [Figures("The differences as a figure")]),
        ],
        path=f"comparisons/{answer['id']}",
        records=(_HEADS, _records(answer)),
    )


def _told(finding: Json, answer: Json) -> str:
    """Return the message of a finding; where runs were compared at one prevalence, a cause is of another difference."""
    message: str = finding["message"]
    of = finding["evidence"]["metric"] if finding.get("code") == "cause_of_difference" else None
    return f"As observed, {message}" if of and answer["metrics"][of].get("observed_values") else message


def _differences(answer: Json) -> Table:
    """Return a row for each metric of two runs: both values, the difference with its interval, and the chances."""
    rows: list[tuple[str, float, list[Cell]]] = []
    for key, metric in answer["metrics"].items():
        (pair,) = metric["differences"]
        cells = [_named(key, metric), *map(Estimate, metric["values"]), *_compared(pair)]
        rows.append((key, pair["difference"] or 0.0, cells))
    heads = [
        Column(Link(name, f"ui/evaluations/{run['id']}"), Kind.VALUE, cut=6)
        for run, name in zip(answer["evaluations"], _short_names(answer["evaluations"]), strict=True)
    ]
    return _table(answer, "Differences", [Column("metric", Kind.NAME), *heads, *_COMPARED], [Group(folded(rows))])


def _orders(answer: Json, names: Sequence[str]) -> Table:
    """Return the runs in their order for each metric, with the differences to the baseline, or to the best."""
    runs = [run["id"] for run in answer["evaluations"]]
    groups = []
    for key, metric in answer["metrics"].items():
        order = in_order(metric)
        reference = answer.get("baseline_id") or runs[order[0]]
        to_reference = [one for one in metric["differences"] if reference in (one["a"], one["b"])]
        pairs = {one["b"] if one["a"] == reference else one["a"]: one for one in to_reference}
        likely = metric.get("probability_best") or [None for _ in runs]
        rows = [
            [
                Link(names[place], f"ui/evaluations/{runs[place]}"),
                Estimate(metric["values"][place]),
                chance(likely[place]),
                *(
                    [None for _ in _COMPARED]
                    if runs[place] not in pairs
                    else _compared(turned(pairs[runs[place]], runs[place]))
                ),
            ]
            for place in order
        ]
        groups.append(Group(rows, _named(key, metric)))
    columns = [Column("run", Kind.NAME, cut=20), Column("value", Kind.VALUE), Column("best with", Kind.NUMBER)]
    return _table(answer, "Differences", [*columns, *_COMPARED], groups)


def _table(answer: Json, what: str, columns: Sequence[Column], groups: Sequence[Group]) -> Table:
    return Table(what, columns, groups, interval_words(answer["design"]["level"]), _SHORT, what.lower())


def _causes(answer: Json, names: Sequence[str]) -> list[Section]:
    """Return the parts of differences where they were asked for, the largest first."""
    name_of = names_by_id(answer, names)
    groups, notes = [], dict[str, None]()
    for key, metric in answer["metrics"].items():
        for pair in metric["differences"]:
            causes = pair.get("causes")
            if causes is None:
                continue
            if causes["items"] is None:
                notes[f"{key}: {causes['reason']}."] = None
                continue
            between = (", ", Name(name_of[pair["a"]]), " less ", Name(name_of[pair["b"]])) if len(names) > _PAIR else ()
            rows = [cause_row(one) for one in sorted(causes["items"], key=lambda one: -abs(one["value"]))]
            total = Estimate(causes["difference"], sign=True)
            groups.append(Group([*rows, [("all together",), total]], (MetricName(key), *between)))
    if not (groups or notes):
        return []
    columns = [Column("cause", Kind.NAME), Column("part", Kind.ESTIMATE, style="strong")]
    tables = [_table(answer, "Causes", columns, groups)] if groups else []
    lede = (
        "Each difference as observed, split into class prevalence and how each class is recognised, that of a loss "
        "into class prevalence, calibration and refinement: parts that add up to it."
    )
    return [
        Section("causes", "Causes", [*tables, *(Said("note", naming(note, answer["metrics"])) for note in notes)], lede)
    ]


def cause_row(cause: Json) -> list[Cell]:
    """Return a part of a difference as a row: what it is of, and its size."""
    return [cause_words(cause), Estimate(cause["value"], cause["low"], cause["high"], sign=True)]


def cause_words(cause: Json) -> tuple[str, ...]:
    """Say what a part of a difference is of."""
    if cause["factor"] == "prevalence":
        return ("class prevalence",)
    if cause["factor"] != "recognition":
        return (cause["factor"],)
    return (
        ("recognition of the other classes",) if cause["class"] is None else ("recognition of ", Name(cause["class"]))
    )


def _slices(answer: Json, names: Sequence[str]) -> list[Section]:
    """Return the differences in each slice where they were asked for, metric by metric."""
    slices, pair = answer.get("slices") or (), len(names) == _PAIR
    if not slices:
        return []
    name_of = names_by_id(answer, names)
    groups = []
    for key in slices[0]["metrics"]:
        rows: list[list[Cell]] = []
        for one in slices:
            for compared in one["metrics"][key]["differences"]:
                between = () if pair else (", ", Name(name_of[compared["a"]]), " less ", Name(name_of[compared["b"]]))
                size = whole(min(one["n_samples"]))
                rows.append([(Name(slice_text(one["where"])), *between), size, *_compared(compared)])
        groups.append(Group(rows, _named(key, slices[0]["metrics"][key])))
    columns = [Column("slice", Kind.NAME, cut=36), Column("samples", Kind.NUMBER), *_COMPARED]
    lede = "The runs on the samples in each slice alone. p is adjusted over all slices."
    return [Section("slices", "Slices", [_table(answer, "Slices", columns, groups)], lede)]


_COMPARED: Final = (
    Column("change", Kind.ESTIMATE, style="strong"),
    Column("p, adjusted", Kind.NUMBER, only=PAGE),
    *(Column(word, Kind.NUMBER) for word in ("better", "same", "worse")),
    Column("verdict", only=PAGE),
)


def _compared(pair: Json) -> list[Cell]:
    """Return the difference of a pair, its p value, the chances of each outcome, and the outcome."""
    word, colour, sign = _outcome(pair)
    return [
        Estimate(pair["difference"], pair["low"], pair["high"], sign=True, note=pair.get("reason") or ""),
        _p(pair["p_adjusted"]),
        *(chance(one) for one in (pair["probability_a_better"], pair["probability_equivalent"], _worse(pair))),
        Tag(colour, word.lower(), sign),
    ]


def _worse(pair: Json) -> float | None:
    """Return the probability that neither the first is better nor both are the same."""
    better, same = pair["probability_a_better"], pair["probability_equivalent"]
    return None if better is None or same is None else max(0.0, 1.0 - better - same)


def _p(value: float | None) -> str | None:
    return None if value is None else p_value(value)


_TURNED: Final = {"better": "worse", "worse": "better"}


def turned(pair: Json, run: str) -> Json:
    """Return a pair as the difference of a run to the other one: signs and chances turn with the order."""
    if pair["a"] == run:
        return pair
    value, low, high = (None if pair[name] is None else 0.0 - pair[name] for name in ("difference", "high", "low"))
    turned = {"difference": value, "low": low, "high": high, "probability_a_better": _worse(pair)}
    return {**pair, **turned, "verdict": _TURNED.get(pair["verdict"], pair["verdict"])}


def _named(key: str, metric: Json) -> Words:
    return (MetricName(key), ", lower is better") if metric["better"] == "lower" else (MetricName(key),)


def folded(rows: Sequence[tuple[str, float, list[Cell]]]) -> list[list[Cell]]:
    """Return rows in the order in which as many as can be looked at come first: of single classes those of the largest
    differences. Within both parts they keep their order.
    """
    first, others = most_telling([(is_of_class(key), difference) for key, difference, _ in rows], _FIRST)
    return [rows[place][2] for place in (*first, *others)]


def most_telling(differences: Sequence[tuple[bool, float]], most: int) -> tuple[list[int], list[int]]:
    """Return the places of as many differences as are looked at first, and those of the others, both in their order.
    Each has whether it is of a single class: overall metrics come first, then large differences.
    """
    order = sorted(range(len(differences)), key=lambda place: (differences[place][0], -abs(differences[place][1])))
    return sorted(order[:most]), sorted(order[most:])


def _short_names(runs: Sequence[Json]) -> list[str]:
    """Return versions of one model, names of several where these tell them apart, else both."""
    models = [run["model"] for run in runs]
    called = [model["name"] for model in models]
    versions = [model.get("version") or model["name"] for model in models]
    short = versions if len(set(called)) == 1 else called
    return short if len(set(short)) == len(short) else run_names(runs)


def _records(answer: Json) -> Iterator[Sequence[str | float | None]]:
    runs = [run["id"] for run in answer["evaluations"]]
    for name, metric in answer["metrics"].items():
        values = dict(zip(runs, metric["values"], strict=True))
        for pair in metric["differences"]:
            a, b = pair["a"], pair["b"]
            yield (name, a, b, values[a], values[b], *(pair[fact] for fact in _HEADS[5:]))


# --- models across datasets ------------------------------------------------------------------------------------------


def best_ranked(names: Sequence[str], ranks: Sequence[float]) -> str:
    """Say which models have the best average rank."""
    first = [name for name, rank in zip(names, ranks, strict=True) if rank == min(ranks)]
    return f"{listed_names(first)} {'has' if len(first) == 1 else 'share'} the best average rank"


def _of_models(answer: Json) -> Document:
    names = [run_name(model) for model in answer["models"]]
    ranks: list[float] = answer["average_ranks"]
    order = sorted(range(len(names)), key=ranks.__getitem__)
    data, friedman = f"{len(answer['datasets'])} datasets", answer["friedman"]["p_value"]
    best = f"{best_ranked(names, ranks)}, {rounded(ranks[order[0]], 2)} over {data}."
    tested = "" if friedman is None else f" Friedman's test of equal ranks: {p_said(friedman)}."
    columns = [Column("model", Kind.NAME, cut=50), Column("average rank", Kind.NUMBER), Column("may be as good")]
    rows: list[list[Cell]] = []
    for place in order:
        alike = sorted({one for clique in answer["cliques"] if place in clique for one in clique} - {place})
        said = listed_names([names[one] for one in alike]) if alike else None
        rows.append([(Name(names[place]),), rounded(ranks[place], 2), said])
    return Document(
        title=(f"{len(names)} models by ", MetricName(answer["metric"])),
        on=f"on {data}",
        facts=[("", f"{answer['better']} is better")],
        identifier=answer["id"],
        opening=[Said("result", best + tested)],
        sections=[
            Section(
                "ranks", "Average ranks", [Table("Average ranks", columns, [Group(rows)], rest="models")], "1 is best."
            ),
            Section(
                "pairs",
                "Pairs of models",
                [_pairs(answer, names), *(Said("note", sentence(note)) for note in answer["notes"])],
                "The median difference over datasets, Wilcoxon’s signed-rank test (p adjusted, "
                f"{sentence(answer['design']['multiplicity']['method'])}), "
                "and how probable each outcome is on a new dataset.",
            ),
            Section("figures", "Figures", [Figures("The differences as a figure")]),
        ],
        path=f"comparisons/{answer['id']}",
        records=(
            ("model", "version", "average_rank"),
            [(model["name"], model.get("version"), rank) for model, rank in zip(answer["models"], ranks, strict=True)],
        ),
    )


def _pairs(answer: Json, names: Sequence[str]) -> Table:
    columns = [
        Column("pair", Kind.NAME),
        Column("median difference", Kind.VALUE, style="strong"),
        Column("p, adjusted", Kind.NUMBER),
        *(Column(word, Kind.NUMBER) for word in ("better", "same", "worse")),
    ]
    rows: list[list[Cell]] = [
        [
            (Name(names[pair["a"]]), " less ", Name(names[pair["b"]])),
            Estimate(pair["median_difference"], sign=True),
            _p(pair["wilcoxon"]["p_adjusted"]),
            *(chance(pair["bayesian_signed_rank"]["mass"][one]) for one in ("a_better", "equivalent", "b_better")),
        ]
        for pair in answer["pairwise"]
    ]
    return Table("Pairs of models", columns, [Group(rows)], short=10, rest="pairs")
