"""Comparisons as documents: which values are better, worse, the same or not settled, and then the numbers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from app.api.documents.document import (
    MARKDOWN,
    PAGE,
    SHORT,
    TEXT,
    Cell,
    Column,
    Document,
    Estimate,
    Facet,
    Figures,
    Group,
    Json,
    Link,
    Medium,
    Name,
    Records,
    Said,
    Section,
    Space,
    Table,
    Tag,
    Words,
    Written,
)
from app.api.documents.reading import dataset_name, run_name, run_names, sentence, shown
from app.api.documents.text import shortened
from app.domain.wording import MOST_NAMED, PLAIN, chance, number, p_said, p_value, percent, whole
from app.domain.wording import names as listed_names

# How likely a difference within the region of equivalence has to be for runs to be called the same.
SAME: Final = 0.95
BETTER, WORSE, EQUAL, OPEN = "Better", "Worse", "The same", "Not settled"
# Of each outcome on a page: the colour, the word and the sign.
_TAGS: Final = {
    BETTER: Tag("pass", "better", "better"),
    WORSE: Tag("fail", "worse", "worse"),
    EQUAL: Tag("note", "the same", "same"),
    OPEN: Tag("inconclusive", "not settled", "open"),
}
_MOST_METRICS, _MOST_RUNS, _MOST_SAID, _MOST_ROWS, _MOST_DISAGREEMENTS = 30, 10, 4, 60, 6
_ON_A_PAGE: Final = 40
_PAIR: Final = 2
_OF_CLASS: Final = re.compile(r"\w+(\([^()]*\))?@")
_HEADS: Final = (
    *("metric", "a", "b", "value_a", "value_b", "difference", "low", "high"),
    *("p_value", "p_adjusted", "probability_a_better", "probability_equivalent"),
)


def comparison_document(answer: Json) -> Document:
    """Return the document of a comparison of runs, or of models across datasets.

    Args:
        answer: As it is answered in JSON.
    """
    return _of_models(answer) if "average_ranks" in answer else _of_runs(answer)


def outcome(metric: Json, pair: Json) -> str:
    """Return the outcome of a pair: better or worse where the interval leaves no other sign, the same where a
    difference too small to matter is nearly sure.
    """
    low, high = pair["low"], pair["high"]
    if (pair["probability_equivalent"] or 0.0) >= SAME:
        return EQUAL
    if low is None or high is None or metric["better"] not in ("higher", "lower") or low <= 0.0 <= high:
        return OPEN
    return BETTER if (low > 0.0) == (metric["better"] == "higher") else WORSE


def outcomes(answer: Json) -> dict[str, list[str]]:
    """Return the metrics of two runs by their outcome."""
    found: dict[str, list[str]] = {BETTER: [], WORSE: [], EQUAL: [], OPEN: []}
    for name, metric in answer["metrics"].items():
        found[outcome(metric, metric["differences"][0])].append(name)
    return found


def is_of_class(key: str) -> bool:
    """Return whether a value, as it is named, is a metric of one class."""
    return _OF_CLASS.match(key) is not None


def result_words(answer: Json) -> tuple[str, ...]:
    """Return the difference of two runs in a sentence or four."""
    found = outcomes(answer)
    parts: list[str] = ["The metrics disagree. "] if found[BETTER] and found[WORSE] else []
    said = [(word, names) for word, names in found.items() if names]
    for place, (word, names) in enumerate(said):
        parts.append(f"{' ' if place else ''}{word}: ")
        for at, name in enumerate(names[:MOST_NAMED]):
            parts += [", ", Name(name)] if at else [Name(name)]
        parts.append(f" and {len(names) - MOST_NAMED} more." if len(names) > MOST_NAMED else ".")
    return tuple(parts)


def pairing_sentence(design: Json) -> str:
    """Return how the runs are held side by side."""
    paired = "Paired" if design["paired"] else "Not paired"
    return f'{paired}: {design["reason"]}. "Same" means a difference of at most {design["rope"]:g}.'


def _chances(pair: Json) -> list[Cell]:
    """Return the chances that the first run of a pair is better, the same, or worse."""
    better, same = pair["probability_a_better"], pair["probability_equivalent"]
    worse = None if better is None or same is None else max(0.0, 1.0 - better - same)
    return [Written(chance(one)) for one in (better, same, worse)]


_CHANCES: Final = ("better", "same", "worse")
_MASSES: Final = ("a_better", "equivalent", "b_better")


def _of_runs(answer: Json) -> Document:
    runs, design = answer["evaluations"], answer["design"]
    names = run_names(runs)
    by_id = dict(zip((run["id"] for run in runs), names, strict=True))
    datasets = list(dict.fromkeys(dataset_name(run["dataset"]) for run in runs))
    pair, level = len(runs) == _PAIR, percent(design["level"], None)
    data = datasets[0] if len(datasets) == 1 else f"{len(datasets)} datasets"
    title = " against ".join(names) if pair else f"{len(runs)} runs"
    role = " (baseline)" if pair and answer.get("baseline") == runs[1]["id"] else ""
    result = [Said("RESULT", result_words(answer), strong=True)] if pair else []
    head: Words = ("### ", Name(names[0]), " against ", Name(names[1])) if pair else f"### {len(runs)} runs compared"
    with_names = f"{names[0]} less {names[1]}, with" if pair else "With"
    return Document(
        title=title,
        on=data,
        heading=(f"{title}{role} on {data}", f"{level} intervals"),
        markdown=[head],
        identifier=answer["id"],
        opening=[
            Said("", pairing_sentence(design), word="Design"),
            *result,
            *_findings(answer, PAGE),
            *_disagreements(answer, PAGE),
        ],
        sections=[
            Section(
                "values",
                "Values",
                [_values(answer, names)],
                "✓ best value; ≈ not the best, yet cannot be told apart from it.",
            ),
            Section(
                "differences",
                "Differences",
                [
                    Space(),
                    *([] if pair else _ranked(answer, by_id)),
                    _differences(answer, by_id),
                    *_findings(answer, SHORT),
                    *([] if pair else _disagreements(answer, TEXT)),
                    *_notes(answer, SHORT),
                    _more(answer),
                ],
                f"{with_names} {level} intervals; p is adjusted ({design['multiplicity']['method']}). The chances are "
                "those that the first is better, the same, or worse.",
            ),
            Section("figures", "Figures", [Figures()]),
        ],
        path=f"comparisons/{answer['id']}",
        method=[sentence(note) for note in answer["notes"]],
        records=Records(_HEADS, list(_records(answer))),
    )


def _findings(answer: Json, only: frozenset[Medium]) -> list[Said]:
    return [Said(one["severity"], one["message"], only=only) for one in answer.get("findings") or ()]


def _notes(answer: Json, only: frozenset[Medium]) -> list[Said]:
    return [Said("NOTE", sentence(note), only=only) for note in answer["notes"][:_MOST_SAID]]


def _more(answer: Json) -> Said:
    return Said("MORE", f"/v1/comparisons/{answer['id']} (json, csv)", only=TEXT)


def _disagreements(answer: Json, only: frozenset[Medium]) -> list[Said]:
    most = _MOST_SAID if only is TEXT else _MOST_DISAGREEMENTS
    kind = "NOTE" if only is TEXT else "warning"
    return [Said(kind, one["message"], "Disagreement", only=only) for one in answer["disagreements"][:most]]


def _values(answer: Json, names: Sequence[str]) -> Table:
    """Return the values of all runs, for a page."""
    runs = answer["evaluations"]
    columns = [Column("metric", 0, named=True, style="code")]
    for place, (run, name) in enumerate(zip(runs, names, strict=True), start=1):
        role = "baseline, " if run["id"] == answer.get("baseline") else ""
        head = Link(name, f"ui/evaluations/{run['id']}", f"{role}{whole(run['n_samples'])} samples")
        columns.append(Column(head, place, Facet.VALUE))
    rows: dict[str, tuple[float, list[Cell]]] = {}
    for key, metric in answer["metrics"].items():
        may = set(metric.get("may_be_best") or ())
        cells: list[Cell] = [_named(key, metric)]
        for run, value in zip(runs, metric["values"], strict=True):
            mark = "✓ " if run["id"] == metric["best"] else "≈ " if run["id"] in may else ""
            cells.append(Estimate(value, note=mark))
        known = [value for value in metric["values"] if value is not None]
        rows[key] = (max(known, default=0.0) - min(known, default=0.0), cells)
    ordered = folded([(key, size, cells) for key, (size, cells) in rows.items()])
    return Table("Values", columns, [Group(ordered)], {Medium.PAGE: _ON_A_PAGE}, "values", only=PAGE)


def _named(key: str, metric: Json) -> Words:
    return (Name(key), " lower is better") if metric["better"] == "lower" else (Name(key),)


def folded(rows: Sequence[tuple[str, float, list[Cell]]]) -> list[list[Cell]]:
    """Return rows in the order in which as many as can be looked at come first: of single classes those of the largest
    differences. Within both parts they keep their order.
    """
    order = sorted(range(len(rows)), key=lambda place: (is_of_class(rows[place][0]), -rows[place][1]))
    seen = set(order[:_ON_A_PAGE])
    return [rows[place][2] for place in chain(sorted(seen), sorted(set(order) - seen))]


def _differences(answer: Json, by_id: Mapping[str, str]) -> Table:
    """Return a row for each metric and pair: both values, the difference with its interval, and the chances."""
    runs, pair = answer["evaluations"], len(answer["evaluations"]) == _PAIR
    names = list(by_id.values())
    short = shortened(_short_names(runs), 6) if pair else ["", ""]
    values = SHORT if pair else MARKDOWN
    several = frozenset() if pair else MARKDOWN
    columns = [
        Column("metric" if not pair else "", 0, named=True, only=TEXT),
        Column("metric", 0, named=True, only=MARKDOWN),
        Column("metric", 12, named=True, only=PAGE, style="code"),
        Column("run", 1, only=several),
        Column("against", 2, only=several),
        Column("Runs", 3, only=frozenset() if pair else PAGE),
        *(
            Column(short[place], 4 + place, Facet.VALUE, right=True, width=6, only=values & TEXT)
            for place in range(_PAIR)
        ),
        *(
            Column((Name(names[place]),) if pair else "its value", 4 + place, Facet.VALUE, right=True, only=MARKDOWN)
            for place in range(_PAIR)
        ),
        Column("change", 6, Facet.VALUE, right=True, width=6, only=TEXT),
        Column("difference", 6, Facet.VALUE, right=True, only=MARKDOWN | PAGE, style="strong"),
        Column(f"{percent(answer['design']['level'], None)} interval", 6, Facet.INTERVAL, only=MARKDOWN | PAGE),
        Column("interval", 6, Facet.INTERVAL, width=6, only=TEXT),
        Column("p, adjusted", 10, only=PAGE),
        *(Column(word, 7 + place, right=True, width=6) for place, word in enumerate(_CHANCES)),
        Column("verdict", 11, only=PAGE),
    ]
    rows = [
        (
            key,
            abs(one["difference"] or 0.0),
            [
                Name(key),
                Name(by_id[one["a"]]),
                Name(by_id[one["b"]]),
                (Name(by_id[one["a"]]), " less ", Name(by_id[one["b"]])),
                *(Estimate(values[one[run]]) for run in ("a", "b")),
                Estimate(one["difference"], one["low"], one["high"], sign=True, note=one.get("reason") or ""),
                *_chances(one),
                Written(p_value(one["p_adjusted"])),
                _TAGS[outcome(metric, one)],
                _named(key, metric),
            ],
        )
        for key, metric in answer["metrics"].items()
        for values in [dict(zip((run["id"] for run in runs), metric["values"], strict=True))]
        for one in metric["differences"]
    ]
    most = {Medium.TEXT: _MOST_METRICS, Medium.MARKDOWN: _MOST_ROWS, Medium.PAGE: _ON_A_PAGE}
    only = SHORT | PAGE if pair else MARKDOWN | PAGE
    more = f'  {len(rows) - _MOST_METRICS} more: in "metrics"'
    return Table("Differences", columns, [Group(folded(rows))], most, "differences", after=more, only=only)


def _short_names(runs: Sequence[Json]) -> list[str]:
    """Return versions of models, or their names where versions do not tell them apart."""
    models = [run["model"] for run in runs]
    found = [shown(model.get("version") or model["name"]) for model in models]
    return found if len(set(found)) == len(found) else [shown(model["name"]) for model in models]


def _ranked(answer: Json, by_id: Mapping[str, str]) -> Iterator[Said | Table]:
    """Yield the runs in their order for each metric, for a text."""
    metrics = list(answer["metrics"].items())
    most = max(_MOST_METRICS // (len(by_id) + 1), 1)
    wide = min(max(map(len, by_id.values())), 20)
    short = dict(zip(by_id, shortened(list(by_id.values()), max(wide, 12)), strict=True))
    columns = [
        Column("rank", 0, right=True, width=4),
        Column("run", 1, width=max(map(len, short.values()))),
        Column("value", 2, Facet.VALUE, right=True, width=7),
        Column("best with", 3, right=True, width=9),
        Column("less than the first", 4),
    ]
    for name, metric in metrics[:most]:
        better = f", {metric['better']} is better" if metric["better"] in ("higher", "lower") else ""
        rows = list(_in_order(answer, metric, short))
        more = f"        {len(rows) - _MOST_RUNS} more"
        yield Said("", (Name(name), better), only=TEXT)
        yield Table(name, columns, [Group(rows)], {Medium.TEXT: _MOST_RUNS}, after=more, only=TEXT)
    if len(metrics) > most:
        yield Said("  ", f'{len(metrics) - most} more: in "metrics"', only=TEXT)


def _in_order(answer: Json, metric: Json, short: Mapping[str, str]) -> Iterator[list[Cell]]:
    runs = [run["id"] for run in answer["evaluations"]]
    order = sorted(range(len(runs)), key=lambda place: metric["ranks"][place] or len(runs) + 1)
    first = runs[order[0]]
    differences = {frozenset((pair["a"], pair["b"])): pair for pair in metric["differences"]}
    for place in order:
        rank, likely = metric["ranks"][place], metric.get("probability_best")
        pair = differences.get(frozenset((first, runs[place])))
        yield [
            None if rank is None else str(rank),
            Name(short[runs[place]]),
            Estimate(metric["values"][place]),
            Written(chance(likely[place] if likely else None)),
            "" if pair is None else _to_first(pair, runs[place]),
        ]


def _to_first(pair: Json, run: str) -> Written:
    """Return the difference of a run to the first: its sign turns with the order that the pair has."""
    value, low, high = pair["difference"], pair["low"], pair["high"]
    if pair["a"] != run and value is not None:
        value, low, high = -value, None if high is None else -high, None if low is None else -low
    return Written("  ".join(PLAIN.estimate(value, low, high, sign=True)))


def _records(answer: Json) -> Iterator[Sequence[str | float | None]]:
    runs = [run["id"] for run in answer["evaluations"]]
    for name, metric in answer["metrics"].items():
        values = dict(zip(runs, metric["values"], strict=True))
        for pair in metric["differences"]:
            a, b = pair["a"], pair["b"]
            yield (name, a, b, values[a], values[b], *(pair[fact] for fact in _HEADS[5:]))


# --- models across datasets ------------------------------------------------------------------------------------------


def _of_models(answer: Json) -> Document:
    names = [run_name(model) for model in answer["models"]]
    ranks: list[float] = answer["average_ranks"]
    order = sorted(range(len(names)), key=ranks.__getitem__)
    datasets, friedman = f"{len(answer['datasets'])} datasets", answer["friedman"]["p_value"]
    title = f"{len(names)} models"
    tested = "" if friedman is None else f"Friedman's test of equal ranks: {p_said(friedman)}."
    method = answer["design"]["multiplicity"]["method"]
    columns = [
        Column("model", 0, named=True, cut=50),
        Column("average rank", 1, Facet.VALUE, right=True, width=12),
        Column("cannot be told apart from", 2),
    ]
    rows: list[list[Cell]] = [
        [Name(names[place]), Estimate(ranks[place], digits=2), _alike(answer, place, names)] for place in order
    ]
    return Document(
        title=title,
        on=f"{datasets}, by {answer['metric']}",
        heading=(f"{title} on {datasets} by {answer['metric']}", f"{answer['better']} is better"),
        markdown=[(f"### {title} on {datasets} by ", Name(answer["metric"])), ""],
        identifier=answer["id"],
        verdict=f"{names[order[0]]} has the best average rank, {number(round(ranks[order[0]], 2))} over {datasets}.",
        opening=[Said("", tested, only=TEXT)] if tested else [],
        sections=[
            Section(
                "ranks",
                "Average ranks",
                [Space(), Table("Average ranks", columns, [Group(rows)], {Medium.MARKDOWN: _MOST_ROWS})],
                f"1 is best. {tested}",
            ),
            Section(
                "pairs",
                "Pairs of models",
                [_pairs(answer, names)],
                "The median difference over datasets, Wilcoxon’s signed-rank test (p adjusted, "
                f"{method}), and how probable each outcome is on a new dataset.",
            ),
            Section("figures", "Figures", [Figures()]),
            Section("", "", [*_notes(answer, TEXT), _more(answer)]),
        ],
        path=f"comparisons/{answer['id']}",
        method=[sentence(note) for note in answer["notes"]],
        records=Records(
            ("model", "version", "average_rank"),
            [
                (model["name"], model.get("version"), rank)
                for model, rank in zip(answer["models"], answer["average_ranks"], strict=True)
            ],
        ),
    )


def _alike(answer: Json, place: int, names: Sequence[str]) -> Words | None:
    """Return the models that one cannot be told apart from."""
    found = sorted({one for clique in answer["cliques"] if place in clique for one in clique} - {place})
    return listed_names([names[one] for one in found]) if found else None


def _pairs(answer: Json, names: Sequence[str]) -> Table:
    columns = [
        Column("models", 0, named=True),
        Column("median difference", 1, Facet.VALUE, style="strong"),
        Column("p, adjusted", 2),
        *(Column(word, 3 + place) for place, word in enumerate(_CHANCES)),
    ]
    rows: list[list[Cell]] = [
        [
            (Name(names[pair["a"]]), " less ", Name(names[pair["b"]])),
            Estimate(pair["median_difference"], sign=True),
            Written(p_value(pair["wilcoxon"]["p_adjusted"])),
            *(Written(chance(pair["bayesian_signed_rank"]["mass"][one])) for one in _MASSES),
        ]
        for pair in answer["pairwise"]
    ]
    return Table("Pairs of models", columns, [Group(rows)], only=PAGE)
