"""An evaluation as a document: findings first, then the values to look at, the classes, and what has no value."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from app.api.documents.document import (
    MARKDOWN,
    PAGE,
    SHORT,
    TEXT,
    Block,
    Cell,
    Column,
    Document,
    Estimate,
    Facet,
    Figures,
    Group,
    Json,
    Matrix,
    Medium,
    Name,
    Records,
    Said,
    Section,
    Space,
    Table,
    Term,
    Words,
)
from app.api.documents.reading import (
    by_severity,
    class_word,
    counted,
    dataset_name,
    ends_of,
    has_classes,
    precision_of,
    recalls_of,
    run_name,
    run_title,
    said_once,
    sentence,
    shown_first,
    value_of,
    weakest_classes,
)
from app.domain.catalogue import describe_metric, metric_by_name
from app.domain.errors import DomainError
from app.domain.expressions.syntax import write_label
from app.domain.inputs.kinds import KINDS
from app.domain.named_metrics import F1, PRECISION, RECALL
from app.domain.wording import PAGE as ON_PAGES
from app.domain.wording import PLAIN, number, percent, whole

_MOST_FINDINGS: Final = {Medium.TEXT: 5, Medium.PAGE: 4}
_MOST_REQUESTED, _MOST_LABELS, _MOST_UNDEFINED, _SEVERAL = 10, 8, 60, 12
_MOST_CLASSES: Final = {Medium.MARKDOWN: 30, Medium.PAGE: 40, Medium.TEXT: _MOST_LABELS}
_MOST_ROWS: Final = {Medium.MARKDOWN: 60}
# From so many classes on the table of classes says more than the matrix.
_MANY_CLASSES: Final = 8
_MOVES: Final = {
    "prevalence_insensitive": "Does not move with prevalence",
    "prevalence_sensitive": "Moves with prevalence",
}
_HEADS: Final = ("scope", "class", "group", "metric", "value", "low", "high", "undefined")
_BALANCED: Final = "at_balanced_prevalence"


def evaluation_document(answer: Json) -> Document:
    """Return the document of an evaluation.

    Args:
        answer: As it is answered in JSON.
    """
    findings = [Said(one["severity"], one["message"]) for one in by_severity(said_once(answer["findings"]))]
    identifier, values = answer.get("id"), _Values(answer)
    classes, matrix = _classes(answer, values), _matrix(answer)
    parts = [classes, matrix] if len(answer["per_class"]) >= _MANY_CLASSES else [matrix, classes]
    return Document(
        title=run_name(answer.get("model")) or "Evaluation, not kept",
        on=dataset_name(answer.get("dataset"), version=True),
        heading=(run_title(answer), ", ".join(_size(answer))),
        markdown=[_title(answer), *_markdown_size(answer)],
        meta=list(_meta(answer)),
        created_at=answer.get("created_at"),
        identifier=identifier,
        verdict=_verdict(answer),
        opening=findings,
        most=_MOST_FINDINGS,
        sections=[
            Section(
                "metrics",
                "Metrics",
                [Space(), values.first(), *(Said("", note, only=PAGE) for note in values.notes()), values.every()],
                "The further a circle lies from its diamond, the more of the value is owed to the class shares of "
                "this data.",
            ),
            *(part for part in parts if part is not None),
            *_parts(answer, identifier),
            _undefined(answer),
        ],
        path="" if identifier is None else f"evaluations/{identifier}",
        method=[
            f"Intervals are at {_level(answer)}. “At equal shares” is the same metric on the matrix with its rows "
            "scaled to equal totals. All numbers, exact and with the method of each interval, are in the JSON answer."
        ],
        terms=sorted({(key, *_card(key)) for key in values.keys if _card(key)[1]}),
        records=Records(_HEADS, list(_Lines(answer).all())),
    )


def _level(answer: Json) -> str:
    return percent(next((float(one["level"]) for one in answer["intervals"].values()), 0.95), None)


@cache
def _card(key: str) -> tuple[str, str]:
    """Return name and sentence of a metric; those of an expression are its text."""
    if "@" in key or "(" in key:
        return key, ""
    try:
        card = describe_metric(metric_by_name(key))
    except DomainError:
        return key, ""
    return sentence(card.name), card.sentence


# --- the heading -----------------------------------------------------------------------------------------------------


def _title(answer: Json) -> Words:
    model, dataset = run_name(answer.get("model")), dataset_name(answer.get("dataset"))
    if not model:
        return "### Evaluation"
    return ("### ", Name(model), " on ", Name(dataset)) if dataset else ("### ", Name(model))


def _outcomes(answer: Json) -> list[str]:
    if not has_classes(answer):
        return []
    return [f"{whole(answer['input']['n_classes'])} {class_word(answer, answer['input']['n_classes'])}"]


def _size(answer: Json) -> list[str]:
    given = answer["input"]
    units, unit = KINDS[given["kind"]].units, "in weight" if given.get("content") == "weights" else "samples"
    if units is not None and units.unit is not None:
        unit = units.unit
    parts = [] if given.get("n_samples") is None else [f"{whole(given['n_samples'])} {unit}"]
    if given.get("clusters"):
        parts.append(f"{whole(len(given['clusters']))} clusters")
    parts += _outcomes(answer)
    if given.get("positive") is not None:
        parts.append(f"positive: {given['positive']}")
    return parts


def _markdown_size(answer: Json) -> list[Words]:
    if not has_classes(answer):
        return []
    given = answer["input"]
    samples = [] if given.get("n_samples") is None else [f"{whole(given['n_samples'])} samples"]
    return [", ".join([*samples, *_outcomes(answer)]) + ".", ""]


def _meta(answer: Json) -> Iterator[tuple[str, Cell]]:
    for one in _size(answer):
        yield "", one
    yield "", answer["input"]["kind"].replace("_", " ")
    for name, value in answer.get("tags", {}).items():
        yield name, (Name(value),)


def _verdict(answer: Json) -> str:
    """Return the worst thing in counts, or what the first metric is; never more than is stored."""
    hidden = next((one for one in answer["findings"] if one["code"] == "accuracy_overstates"), None)
    if hidden is not None:
        return ". ".join(str(hidden["message"]).rstrip(".").split(". ")[:2]) + "."
    first = next(iter(answer["headline"]["metrics"].items()), None)
    if first is None:
        return "No usual metric has a value."
    key, one = first
    said = f"{_card(key)[0]} is {ON_PAGES.said(one['value'], one['low'], one['high'])}."
    weakest = answer["headline"].get("weakest_class")
    if weakest is not None:
        said += f" The lowest recall is that of {class_word(answer)} {weakest['label']}: "
        said += f"{ON_PAGES.value(weakest[RECALL])}, of {whole(weakest['n'])} cases."
    return said


# --- values ----------------------------------------------------------------------------------------------------------


class _Values:
    """The values of an evaluation as estimates, and the tables of them."""

    def __init__(self, answer: Json) -> None:
        self._answer = answer
        self._reasons = {(one["metric"], one.get("class")): one["reason"] for one in answer["undefined"]}
        self._same, self._moved, self._losses = shown_first(answer)
        self.interval = f"{_level(answer)} interval"
        self.keys = (*self._same, *self._moved, *self._losses)

    def estimate(self, name: str, value: float | None, note: str = "") -> Estimate:
        """Return a value with its limits and its twin, or why there is none."""
        twin = self._answer["metrics"].get(_BALANCED, {}).get(name)
        ends = self._answer.get("intervals_at_balanced_prevalence", {}).get(name, {})
        return Estimate(
            value,
            *ends_of(self._answer, name),
            reason="" if value is not None else self._reason(name),
            note=note,
            twin=None if twin is None else Estimate(twin, ends.get("low"), ends.get("high")),
            moves=self._moves(name),
        )

    def _moves(self, name: str) -> bool | None:
        groups = self._answer["metrics"]
        if name in groups["prevalence_sensitive"] or name.partition("@")[0] == RECALL:
            return name in groups["prevalence_sensitive"]
        return False if name in groups["prevalence_insensitive"] else None

    def _reason(self, name: str) -> str:
        key, _, label = name.partition("@")
        return str(self._reasons.get((key, label or None)) or self._reasons.get((name, None)) or "no value")

    def row(self, key: str, value: float | None = None, *, known: bool = False, note: str = "") -> list[Cell]:
        """Return a value as a row: its key, the estimate, its name, whether prevalence moves it."""
        one = self.estimate(key, value if known else value_of(self._answer, key)[1], note)
        name, explained = _card(key)
        moves = "" if key in self._answer["requested"] else "yes" if one.moves else "no"
        return [Name(key), one, Term(key if explained and key in self.keys else "", name), moves]

    def columns(self) -> list[Column]:
        """Return the columns of values."""
        return [
            Column("metric", 0, named=True, width=26, only=SHORT),
            Column("Metric", 2, named=True, only=PAGE),
            Column("value", 1, Facet.VALUE, right=True, only=MARKDOWN),
            Column("value", 1, Facet.VALUE, width=5, gap=1, only=TEXT),
            Column("In this data", 1, Facet.VALUE, only=PAGE, style="v big"),
            Column(self.interval, 1, Facet.INTERVAL, width=16),
            Column("", 1, Facet.TRACK, only=TEXT | PAGE),
            Column("changes with the class mix", 3, only=MARKDOWN),
            Column("at equal class sizes", 1, Facet.TWIN, right=True, only=MARKDOWN),
            Column("◆ At equal shares", 1, Facet.TWINS, only=PAGE, style="bal"),
        ]

    def first(self) -> Table:
        """Return the values to look at first, by what the mix of the classes does to them."""
        answer = self._answer
        if not has_classes(answer):
            groups = [Group([self.row(key) for key in answer["headline"]["metrics"]], "METRIC")]
        else:
            same = [self.row(key) for key in self._same]
            weakest = next(iter(weakest_classes(answer)), None)
            if weakest is not None and RECALL not in self._same:
                same.append(self.row(f"{RECALL}@{write_label(weakest)}", recalls_of(answer)[weakest], known=True))
            moved, twin = [self.row(key) for key in self._moved], Column("at equal class sizes", 1, Facet.TWIN)
            losses = [self.row(key, note=self._by_chance(key)) for key in self._losses]
            nothing = Column("", 1, Facet.TRACK)
            groups = [
                Group(same, "SAME AT ANY CLASS MIX", "Does not move with prevalence", _STAYS),
                Group(moved, "CHANGES WITH THE CLASS MIX", "Moves with prevalence", _BESIDE, twin),
                Group(losses, "PROBABILITIES, lower is better", "Probabilities, lower is better", last=nothing),
            ]
        return Table(
            f"Metrics with {self.interval}s", self.columns(), [*groups, *self._requested()], _MOST_ROWS, style="hl"
        )

    def _by_chance(self, key: str) -> str:
        details = (self._answer.get("probabilities") or {}).get("calibration", {}).get(key)
        return (
            "" if details is None else f"perfect probabilities would show {number(details['expected_if_calibrated'])}"
        )

    def _requested(self) -> Iterator[Group]:
        requested = self._answer["requested"]
        single = {text: value for text, value in requested.items() if not isinstance(value, Mapping)}
        rows = [self.row(text, value, known=True) for text, value in single.items()]
        title = "REQUESTED"
        yield Group(rows[:_MOST_REQUESTED], title, "Requested")
        yield Group(rows[_MOST_REQUESTED:], only=MARKDOWN | PAGE)
        lists = [text for text in requested if text not in single]
        of_classes = [
            self.row(text.replace("@*", f"@{write_label(label)}"), one, known=True)
            for text in lists
            for label, one in requested[text].items()
        ]
        yield Group(of_classes, "", "" if rows else "Requested", only=PAGE)
        rest = [*lists, *list(single)[_MOST_REQUESTED:]]
        if rest:
            more = f" and {len(rest) - 1} more" if rest[1:] else ""
            said = f'{rest[0]}{more}: in "requested"'
            yield Group([[said, "", "", ""]], "" if rows else title, only=TEXT)

    def every(self) -> Table:
        """Return all other overall metrics, by what prevalence does to them."""
        groups = [
            Group([self.row(key) for key in self._answer["metrics"][group] if key not in self.keys], "", title)
            for group, title in _MOVES.items()
        ]
        columns = [
            Column("Metric", 2, named=True),
            Column("Key", 0, style="code"),
            Column("Value", 1, Facet.VALUE),
            Column(self.interval, 1, Facet.INTERVAL),
            Column("At equal shares", 1, Facet.TWINS, style="bal"),
        ]
        return Table("All other metrics", columns, groups, {Medium.PAGE: 0}, "metrics", "", only=PAGE)

    def notes(self) -> list[str]:
        """Return what has to be known to read some intervals of requested values, each said once."""
        intervals = [self._answer["intervals"].get(name, {}) for name in self._answer["requested"]]
        return list(dict.fromkeys(one["note"] for one in intervals if "note" in one))


_STAYS: Final = "every class counts the same, whatever its share"
_BESIDE: Final = "read it beside its value at equal class shares"


# --- classes ---------------------------------------------------------------------------------------------------------


def _recall(answer: Json, label: str, recall: float | None) -> Estimate:
    return Estimate(recall, *ends_of(answer, f"{RECALL}@{write_label(label)}"))


def _matrix(answer: Json) -> Section | None:
    counts, recalls = answer["input"].get("confusion_matrix"), recalls_of(answer)
    if counts is None:
        return None
    labels = answer["input"]["labels"]
    matrix = Matrix(
        labels,
        counts,
        [_recall(answer, label, recalls.get(label)) for label in labels],
        [precision_of(answer, label) for label in labels],
        TEXT | PAGE,
    )
    return Section("matrix", "Confusion matrix", [matrix])


def _classes(answer: Json, values: _Values) -> Section | None:
    """Return each class, the lowest recall first, and those without one at the end."""
    if not has_classes(answer):
        return None
    order = weakest_classes(answer)
    order += [label for label in answer["per_class"] if label not in order]
    one, many = class_word(answer), class_word(answer, 2)
    recalls, labels = recalls_of(answer), list(answer["input"]["labels"])
    places = {label: place for place, label in enumerate(labels)}
    counts = answer["input"].get("confusion_matrix")
    matrix = None if counts is None else Matrix(labels, counts, [], [])
    rows: list[list[Cell]] = []
    for label in order:
        groups, place = answer["per_class"][label], places[label]
        twin = groups.get(_BALANCED, {})
        taken: list[str] = []
        for count, other in [] if matrix is None else matrix.taken_for(place, 3):
            taken += [", "] if taken else []
            taken += [Name(labels[other]), f" {whole(count)}"]
        share = answer["input"]["prevalence"].get(label)
        rows.append(
            [
                (Name(label),),
                "" if matrix is None else counted(matrix.sizes[place]),
                _recall(answer, label, recalls.get(label)),
                tuple(taken) or "none",
                *(Estimate(each) for each in (precision_of(answer, label), twin.get(PRECISION))),
                *(Estimate(each) for each in (groups["prevalence_sensitive"].get(F1), twin.get(F1))),
                "" if share is None else percent(share),
            ]
        )
    columns = [
        Column(one, 0, named=True, only=MARKDOWN | PAGE, sort="t"),
        Column("", 0, named=True, cut=26, width=14, only=TEXT),
        Column("n", 1, right=True, only=PAGE, sort="n", style="r"),
        Column(RECALL, 2, Facet.VALUE, right=True, width=6, sort="asc", style="strong"),
        Column("", 2, Facet.TRACK, only=PAGE),
        Column(values.interval, 2, Facet.INTERVAL, width=16),
        Column("Most often taken for", 3, only=PAGE),
        Column(PRECISION, 4, Facet.VALUE, right=True, width=9, only=TEXT | PAGE, sort="n"),
        Column("◆ equal", 5, Facet.VALUE, only=PAGE, style="bal", sort="n"),
        Column("F1", 6, Facet.VALUE, only=PAGE, sort="n"),
        Column("◆ equal", 7, Facet.VALUE, only=PAGE, style="bal", sort="n"),
        Column("Share", 8, right=True, only=PAGE, style="r", sort="n"),
    ]
    known = [recalls[label] for label in order if recalls.get(label) is not None]
    table = Table(
        f"{many.capitalize()}, the lowest recall first",
        columns,
        [Group(rows[: len(known)], f"WEAKEST {many.upper()}"), Group(rows[len(known) :], only=PAGE)],
        _MOST_CLASSES,
        many,
        "classes",
        after=_others([recalls[label] for label in order[: len(known)]][_MOST_LABELS:]),
        only=SHORT | PAGE if counts is None else MARKDOWN | PAGE,
    )
    return Section(
        "classes",
        many.capitalize(),
        [table],
        "Lowest recall first. Recall does not move with prevalence; precision and F1 do, and ◆ is their value at equal "
        f"shares. Each interval is that of its {one} alone, chosen beforehand; the lowest of all recalls has a higher "
        "upper limit.",
    )


def _others(recalls: Sequence[float | None]) -> str:
    return f"  the other {len(recalls)}: recall {PLAIN.interval(recalls[0], recalls[-1])}" if recalls else ""


# --- the rest --------------------------------------------------------------------------------------------------------


def _parts(answer: Json, identifier: str | None) -> Iterator[Section]:
    """Yield the sections that pages load behind everything else."""
    yield Section("figures", "Figures", [Figures("Curves, calibration and other figures of this run")])
    if answer["input"].get("confusion_matrix") is not None and identifier is not None:
        said = "Metrics at other class shares"
        yield Section("what-if", "What if the class shares were others?", [Figures(said)])


def _undefined(answer: Json) -> Section:
    """Return why values do not exist; what has one reason is in one row."""
    undefined = answer["undefined"]
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for one in undefined:
        label = one.get("class") or ""
        # The class has a column of its own, so that many classes with one reason are one row.
        reason = one["reason"].replace(f"class '{label}'", "the class") if label else one["reason"]
        metrics, labels = found.setdefault(reason, ({}, {}))
        metrics[one["metric"]] = None
        labels[label] = None
    rows: list[list[Cell]] = [
        [_several(metrics), _several(label for label in labels if label) or "all together", sentence(reason)]
        for reason, (metrics, labels) in list(found.items())[:_MOST_UNDEFINED]
    ]
    columns = [Column("Metric", 0), Column("Class", 1), Column("Why", 2)]
    table = Table("Values that do not exist", columns, [Group(rows)], style="top_", only=PAGE)
    many = Said("", f"{len(undefined)} values do not exist; the JSON has the reasons.", only=MARKDOWN)
    blocks: list[Block] = [table, many, Said("NO VALUE", _first_undefined(undefined), only=TEXT)] if undefined else []
    more = f"/v1/evaluations/{answer['id']} (json, csv)" if answer.get("id") is not None else _NOT_KEPT
    lede = "They are shown as –, never as 0, and no mean is taken over them."
    return Section("undefined", "Values that do not exist", [*blocks, Said("MORE", more, only=TEXT)], lede)


_NOT_KEPT: Final = 'JSON has all metrics. "intervals": "all" adds the missing limits.'


def _first_undefined(undefined: Sequence[Json]) -> str:
    first, rest = undefined[0], len(undefined) - 1
    name = first["metric"] if first.get("class") is None else f"{first['metric']}@{write_label(first['class'])}"
    said = f"{len(undefined)} metrics. " if rest else ""
    return f"{said}{name}: {first['reason']}." + (f' {rest} more; reasons in "undefined".' if rest else "")


def _several(names: Iterable[str]) -> str:
    kept = list(names)
    return ", ".join(kept[:_SEVERAL]) + (f" and {len(kept) - _SEVERAL} more" if len(kept) > _SEVERAL else "")


# --- records ---------------------------------------------------------------------------------------------------------


class _Lines:
    """The values of an evaluation with their limits, or why there is none."""

    def __init__(self, answer: Json) -> None:
        self._answer, self._intervals = answer, answer["intervals"]
        self._balanced = answer.get("intervals_at_balanced_prevalence", {})
        self._reasons = {
            (one["metric"], one.get("class"), one.get("group")): one["reason"] for one in answer["undefined"]
        }

    def all(self) -> Iterator[Sequence[str | float | None]]:
        """Yield a line for every value: overall, of each class, requested, and of each decision that is no class."""
        for group, metrics in self._answer["metrics"].items():
            for key, value in metrics.items():
                yield self._line("overall", None, group, key, value)
        for label, groups in self._answer["per_class"].items():
            of = f"@{write_label(label)}"
            for group, metrics in groups.items():
                for key, value in metrics.items():
                    yield self._line("class", label, group, key, value, of)
        for text, value in self._answer["requested"].items():
            by_class = value if isinstance(value, Mapping) else {None: value}
            for label, one in by_class.items():
                yield self._line("requested", label, "", text, one)
        shares = (self._answer.get("decisions") or {}).get("share_of_class", {})
        for label, decisions in shares.items():
            # The decision stands in place of the group.
            for decision, one in decisions.items():
                reason = "no value" if one["value"] is None else None
                yield ("decision", label, decision, "share_of_class", one["value"], one["low"], one["high"], reason)

    def _line(
        self, scope: str, label: str | None, group: str, metric: str, value: float | None, of: str = ""
    ) -> Sequence[str | float | None]:
        of_group = self._balanced if group == _BALANCED else self._intervals
        found = of_group.get(metric + of, {})
        reason = None
        if value is None:
            places = ((metric, label, group), (metric, label, None), (metric, None, None), ("*", None, group))
            reason = next((self._reasons[place] for place in places if place in self._reasons), "no value")
        return (scope, label, group, metric, value, found.get("low"), found.get("high"), reason)
