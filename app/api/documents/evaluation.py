"""An evaluation as a document: findings first, then the values to look at, the classes, and what has no value."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from app.api.documents import headings
from app.api.documents.document import (
    ALL,
    PAGE,
    SHORT,
    TEXT,
    Block,
    Cell,
    Column,
    Document,
    Estimate,
    Figures,
    Group,
    Json,
    Kind,
    Matrix,
    Medium,
    MetricName,
    Name,
    Said,
    Section,
    Table,
    Term,
    Words,
)
from app.api.documents.reading import (
    by_severity,
    class_word,
    ends_of,
    has_classes,
    here,
    key_of,
    leading,
    level_of,
    metric_sentence,
    metrics_of,
    mistakes_of,
    naming,
    overall,
    positive_counts,
    precision_of,
    recalls_of,
    said_once,
    shown_first,
    task_in,
    weakest_classes,
)
from app.domain.catalogue import spoken, titled
from app.domain.expressions.syntax import of_class, write_label
from app.domain.inputs.content import Content
from app.domain.inputs.kind import EQUALLY_FREQUENT
from app.domain.inputs.kinds import KINDS
from app.domain.named_metrics import F1, PRECISION, RECALL, SUPPORT
from app.domain.wording import PAGE as ON_PAGES
from app.domain.wording import (
    class_before,
    dataset_name,
    number,
    numbered,
    percent,
    run_name,
    sentence,
    sentences_in,
    share,
    whole,
)

# Rows of a text, which has at most 60 lines.
_SHORT_METRICS, _SHORT_CLASSES, _SHORT_QUERIES = 20, 8, 5
_MOST_UNDEFINED, _MOST_MISTAKES, _SEVERAL = 60, 4, 12
# From so many classes on the table of classes says more than the matrix.
_MANY_CLASSES: Final = 8
_MOVES: Final = {
    "prevalence_insensitive": "Does not move with prevalence",
    "prevalence_sensitive": "Moves with prevalence",
}
_HEADS: Final = ("scope", "class", "group", "metric", "value", "low", "high", "undefined")
_BALANCED: Final = "at_balanced_prevalence"


def evaluation_document(answer: Json) -> Document:
    """Return the document of an evaluation, which is given as it is answered in JSON."""
    identifier, values, task = answer.get("id"), _Values(answer), task_in(answer)
    hidden, keys = _hidden(answer), metrics_of(answer)
    findings = [
        # A page says it as its verdict.
        Said(one["severity"], naming(one["message"], keys), SHORT if one is hidden else ALL)
        for one in by_severity(said_once(answer["findings"]))
    ]
    balanced = _have_twins([answer["metrics"]])
    model, data = run_name(answer.get("model")), dataset_name(answer.get("dataset"), version=True)
    part = answer["input"].get("slice")
    return Document(
        title=(Name(model),) if model else "Evaluation, not saved",
        on=("on ", Name(data), *((", slice ", Name(part["where"])) if part else ())) if data else "",
        facts=list(facts_of(answer)),
        created_at=answer.get("created_at"),
        identifier=identifier,
        opening=[Said("result", _verdict(answer), PAGE), *findings],
        sections=[
            *([_metrics(answer, first, values)] if (first := values.first()).rows else []),
            *_classes(answer, values.interval),
            *_decisions(answer, values.interval),
            *_queries(answer),
            *_folds(answer, values.keys),
            *_parts(answer, identifier),
            _undefined(answer),
            *values.others(),
        ],
        path="" if identifier is None else f"evaluations/{identifier}",
        method=[
            f"Intervals are at {values.level}. {_SCALED if balanced and _balanced(answer) == EQUALLY_FREQUENT else ''}"
            "All numbers, exact and with the method of each interval, are in the JSON answer."
        ],
        terms=sorted(
            (key, titled(key, task), said)
            for key in {*map(key_of, values.keys)}
            if (said := metric_sentence(key, task))
        ),
        task=task,
        records=(_HEADS, _lines(answer)),
    )


def _metrics(answer: Json, first: Table, values: "_Values") -> Section:
    """Return the values to look at first, and how to read them."""
    drawn = has_classes(answer) and _have_twins([answer["metrics"]])
    lede = (
        "The further a circle lies from its diamond, the more of the value is owed to the "
        f"{class_word(answer)} prevalence of this data."
    )
    says = headings.of_metrics(answer, values.moved, _balanced(answer))
    blocks: list[Block] = [first, *(Said("note", note) for note in values.notes())]
    return Section("metrics", "Metrics", blocks, lede if drawn else "", says)


def _balanced(answer: Json) -> str:
    """Return what balanced values are of, in words."""
    units = KINDS[answer["input"]["kind"]].units
    return EQUALLY_FREQUENT if units is None else units.balanced


def _have_twins(each: Iterable[Json]) -> bool:
    """Return whether any of these metrics has a value at equal class prevalence."""
    return any(value is not None for groups in each for value in groups.get(_BALANCED, {}).values())


def facts_of(answer: Json) -> Iterator[tuple[str, Cell]]:
    """Yield the size and kind of its data, and its tags: a name, where a page needs one, and what it is."""
    given = answer["input"]
    units, unit = KINDS[given["kind"]].units, "in weight" if given.get("content") == "weights" else "samples"
    unit = (units and units.unit) or unit
    if given.get("n_samples") is not None:
        of = f" of {whole(given['slice']['of'])}" if "slice" in given else ""
        yield "", f"{whole(given['n_samples'])}{of} {unit}" if of else numbered(given["n_samples"], unit)
    clusters = given.get("clusters") or ()
    if has_classes(answer) or (clusters and given["labels"]):
        yield "", f"{whole(given['n_classes'])} {class_word(answer, given['n_classes'])}"
    if clusters:
        yield "", numbered(len(clusters), "clusters")
    if given.get("positive") is not None:
        yield "", ("positive: ", Name(given["positive"]))
    yield "kind", given["kind"].replace("_", " ")
    for name, value in answer.get("tags", {}).items():
        yield name, (Name(value),)


_SCALED: Final = "“Balanced” is the same metric on the matrix with its rows scaled to equal totals. "


def _hidden(answer: Json) -> Json | None:
    """Return the finding of a class that accuracy hides, if there is one."""
    return next((one for one in answer["findings"] if one["code"] == "accuracy_overstates"), None)


def _by_use(answer: Json) -> list[str]:
    """Return what is looked at first; of a kind with a measure of its own what runs are ranked by comes first."""
    units = KINDS[answer["input"]["kind"]].units
    ranked = [] if units is None else [metric.key for metric in units.ranked]
    places = {key: place for place, key in enumerate(ranked)}
    return sorted(leading(answer), key=lambda one: places.get(one.partition("(")[0], len(places)))


def _verdict(answer: Json) -> str:
    """Return the worst thing in counts, or what the first metric is; never more than is stored."""
    hidden = _hidden(answer)
    if hidden is not None:
        return " ".join(f"{one}." for one in sentences_in(hidden["message"])[:2])
    found = positive_counts(answer) if answer["input"].get("content") == "counts" else None
    if found is not None and 0 < 2 * found[1] < answer["input"]["n_samples"]:
        # Of a rare class accuracy says little, whatever it is.
        label, n, right, taken = found
        alerts = f"{whole(taken - right)} of its {whole(taken)} alerts are false" if taken else "there is no alert"
        caught = f"{whole(right)} of {whole(n)} cases are caught and {whole(n - right)} missed"
        return f"{class_before(label).capitalize()}{label}: {caught}; {alerts}."
    key = next(iter(_by_use(answer)), None)
    if key is None:
        return "What is decided are no classes, so that no metric of classes exists."
    value = overall(answer)[key]
    said = ON_PAGES.said(value, *ends_of(answer, key))
    said = f"{titled(key, task_in(answer))} " + ("has no value." if value is None else f"is {said}.")
    if headings.of_classes(answer):
        weakest = answer["headline"]["weakest_class"]
        said += f" The lowest recall is that of {class_word(answer)} {weakest['label']}: "
        said += f"{headings.cases_found(answer) or ON_PAGES.value(weakest[RECALL])}."
    return said


# --- values ----------------------------------------------------------------------------------------------------------


class _Values:
    """The values of an evaluation as rows: the metric, its estimate, and the same at equal class prevalence."""

    def __init__(self, answer: Json) -> None:
        self._answer = answer
        self._reasons = {(one["metric"], one.get("class")): one["reason"] for one in answer["undefined"]}
        self._same, self.moved, self._losses = shown_first(answer)
        self.level = level_of(answer)
        self.interval = f"{self.level} interval"
        self.keys = (*self._same, *self.moved, *self._losses)

    def row(self, key: str, value: float | None, note: str = "") -> list[Cell]:
        """Return one row; a value that does not exist has its reason."""
        one = self._estimate(key, value, note)
        task = task_in(self._answer)
        named = Term(key, titled(key, task)) if key in self.keys and metric_sentence(key, task) else None
        stays = has_classes(self._answer) and not one.moves
        return [named or (MetricName(key),), one, "same" if stays else one.twin]

    def _estimate(self, name: str, value: float | None, note: str) -> Estimate:
        groups, twin = self._answer["metrics"], self._answer["metrics"].get(_BALANCED, {}).get(name)
        ends = self._answer.get("intervals_at_balanced_prevalence", {}).get(name, {})
        return Estimate(
            value,
            *ends_of(self._answer, name),
            note=note or ("" if value is not None else self._reason(name)),
            twin=None if twin is None else Estimate(twin, ends.get("low"), ends.get("high")),
            moves=name not in groups["prevalence_insensitive"] and name.partition("@")[0] != RECALL
            if has_classes(self._answer)
            else None,
        )

    def _reason(self, name: str) -> str:
        # Without a label a metric of two classes is that of the positive one.
        places = ((name, None), (name, self._answer["input"].get("positive")))
        return str(next((self._reasons[place] for place in places if place in self._reasons), "no value"))

    def _rows(self, keys: Iterable[str]) -> list[list[Cell]]:
        return [self.row(key, overall(self._answer).get(key)) for key in keys]

    def first(self) -> Table:
        """Return the values to look at first, by what the mix of the classes does to them."""
        answer, (same_title, moved_title) = self._answer, _MOVES.values()
        same, losses = self._rows(self._same), "Probabilities, lower is better"
        weakest = next(iter(weakest_classes(answer)), None)
        if weakest is not None and RECALL not in self._same:
            same.append(self.row(f"{RECALL}@{write_label(weakest)}", recalls_of(answer)[weakest]))
        calibration = (answer.get("probabilities") or {}).get("calibration", {})
        by_chance = {
            key: f"perfect probabilities would show {number(one['expected_if_calibrated'])}"
            for key, one in calibration.items()
            if one.get("expected_if_calibrated") is not None
        }
        by_mix = [Group(same, same_title), Group(self._rows(self.moved), moved_title)]
        groups = [
            *(by_mix if has_classes(answer) else [Group(self._rows(_by_use(answer)))]),
            Group([self.row(key, overall(answer).get(key), by_chance.get(key, "")) for key in self._losses], losses),
            Group(list(self._requested()), "Requested"),
        ]
        columns = [
            Column("metric", Kind.NAME),
            Column("value", Kind.DRAWN, style="v big"),
            Column("balanced", Kind.VALUE, style="bal"),
        ]
        caption = f"Metrics with {self.interval}s"
        balanced = _balanced(answer)
        return Table(caption, columns, groups, self.interval, _SHORT_METRICS, "metrics", "hl", balanced=balanced)

    def _requested(self) -> Iterator[list[Cell]]:
        for text, value in self._answer["requested"].items():
            if isinstance(value, Mapping):
                for label, one in value.items():
                    yield self.row(of_class(text, label), one, self._reasons.get((text, label), ""))
            else:
                yield self.row(text, value)

    def others(self) -> Iterator[Section]:
        """Yield all other overall metrics, which a page has last."""
        groups = [
            Group(
                [
                    [titled(key, task_in(self._answer)), key, *self.row(key, value)[1:]]
                    for key, value in self._answer["metrics"][group].items()
                    if key not in self.keys
                ],
                title,
            )
            for group, title in _MOVES.items()
        ]
        columns = [
            Column("Metric", Kind.NAME),
            Column("Key", style="code"),
            Column("Value", Kind.ESTIMATE),
            Column("balanced", Kind.VALUE, style="bal"),
        ]
        if any(group.rows for group in groups):
            table = Table("All other metrics", columns, groups, self.interval, folded=True, only=PAGE)
            yield Section("others", "Other metrics", [table])

    def notes(self) -> list[str]:
        """Return what has to be known to read some intervals of requested values, each said once."""
        intervals = [self._answer["intervals"].get(name, {}) for name in self._answer["requested"]]
        return list(dict.fromkeys(one["note"] for one in intervals if "note" in one))


# --- classes ---------------------------------------------------------------------------------------------------------


def _classes(answer: Json, interval: str) -> list[Section]:
    """Return the classes, the lowest recall first, and the matrix: what says more comes first."""
    if not has_classes(answer):
        return []
    if not recalls_of(answer):
        return [_of_items(answer, interval)]
    counts, labels = answer["input"].get("confusion_matrix"), list(answer["input"]["labels"])
    one, many = class_word(answer), class_word(answer, 2)
    recalls, order = recalls_of(answer), weakest_classes(answer)
    order += [label for label in answer["per_class"] if recalls.get(label) is None]
    columns = [
        Column(one, Kind.NAME, cut=26),
        Column("n", Kind.NUMBER),
        Column(RECALL, Kind.DRAWN, style="strong"),
        Column("Most often taken for", style="many", only=PAGE),
        Column(PRECISION, Kind.VALUE),
        Column("balanced", Kind.VALUE, only=PAGE, style="bal"),
        Column("F1", Kind.VALUE, only=PAGE),
        Column("balanced", Kind.VALUE, only=PAGE, style="bal"),
        Column("Share", Kind.NUMBER, only=PAGE),
    ]
    table = Table(
        f"{many.capitalize()}, the lowest recall first",
        columns,
        [Group([_class_row(answer, label, recalls.get(label)) for label in order])],
        interval,
        _SHORT_CLASSES,
        many,
        sorted_by=RECALL,
        only=PAGE if set(recalls.values()) <= {None} else ALL,
    )
    classes = Section(
        "classes",
        many.capitalize(),
        [table],
        "Lowest recall first. Recall does not move with prevalence; precision and F1 do"
        f"{', and ◆ is their value at equal prevalence' if _have_twins(answer['per_class'].values()) else ''}. Each "
        f"interval is that of its {one} alone, chosen beforehand; the lowest of all recalls has a higher upper limit.",
        headings.of_classes(answer),
    )
    if counts is None:
        return [classes]
    few = len(labels) < _MANY_CLASSES
    mistakes = _mistakes(labels, counts, PAGE if few else TEXT | PAGE)
    matrix = Matrix(labels, counts, mistakes, TEXT | PAGE if few else PAGE)
    confused = Section("matrix", "Confusion matrix", [matrix, mistakes], says=headings.of_matrix(answer))
    return [confused, classes] if few else [classes, confused]


def _of_items(answer: Json, interval: str) -> Section:
    """Return the classes of items, which have no recall, by their own metrics, the lowest of the first one first."""
    values = {label: here(groups) for label, groups in answer["per_class"].items()}
    first, *_ = keys = list(next(iter(values.values())))
    rows: list[list[Cell]] = [
        [
            (Name(label),),
            *(Estimate(each[key], *ends_of(answer, f"{key}@{write_label(label)}"), moves=False) for key in keys),
        ]
        for label, each in sorted(values.items(), key=lambda one: (one[1][first] is None, one[1][first] or 0.0))
    ]
    columns = [Column("class", Kind.NAME, cut=26), *(Column((MetricName(key),), Kind.VALUE) for key in keys)]
    caption = f"Classes, the lowest {spoken(first)} first"
    return Section("classes", "Classes", [Table(caption, columns, [Group(rows)], interval, _SHORT_CLASSES, "classes")])


def _decisions(answer: Json, interval: str) -> Iterator[Section]:
    """Yield how often each decision that is no class is taken about each class."""
    given, shares = answer["input"], (answer.get("decisions") or {}).get("share_of_class", {})
    groups = [
        Group(
            [
                [Name(decision), whole(count), Estimate(**shares[label][decision])]
                for decision, count in zip(given["decisions"], row, strict=True)
            ],
            ("about ", Name(label)),
        )
        for label, row in zip(shares, given.get("decision_matrix", ()), strict=True)
    ]
    if groups:
        columns = [Column("decision", Kind.NAME, cut=26), Column("n", Kind.NUMBER), Column("share", Kind.DRAWN)]
        table = Table("How often each decision is taken about each class", columns, groups, interval)
        yield Section("decisions", "Decisions", [table])


def _queries(answer: Json) -> Iterator[Section]:
    """Yield the queries that fail worst, of a ranking."""
    queries = answer.get("queries")
    if not queries or not queries["lowest"]:
        return
    columns = [
        Column("query", Kind.NAME, cut=40),
        Column((MetricName(queries["lowest_by"]),), Kind.VALUE, style="strong"),
        *(Column(head, Kind.NUMBER) for head in ("retrieved", "relevant")),
    ]
    rows: list[list[Cell]] = [
        [Name(str(one["query_id"])), Estimate(one["value"]), whole(one["items"]), whole(one["relevant"])]
        for one in queries["lowest"]
    ]
    table = Table("Queries with the lowest values", columns, [Group(rows)], short=_SHORT_QUERIES, rest="queries")
    lede = "The lowest first, with how many items were retrieved and are relevant."
    yield Section("queries", "Queries", [table], lede, headings.of_queries(answer))


def _folds(answer: Json, keys: Sequence[str]) -> Iterator[Section]:
    """Yield how far values differ between folds, or between runs of the same thing."""
    found = {key: one for key, one in (answer.get("folds") or {}).items() if key in keys and one["mean"] is not None}
    heads = ("mean", "sd between them", "lowest", "highest")
    columns = [Column("over the folds", Kind.NAME), *(Column(head, Kind.VALUE) for head in heads)]
    rows: list[list[Cell]] = [
        [(MetricName(key),), *map(Estimate, (one["mean"], one["sd"], min(one["values"]), max(one["values"])))]
        for key, one in found.items()
    ]
    if rows:
        yield Section("folds", "Folds", [Table("Values over the folds", columns, [Group(rows)])])


def _class_row(answer: Json, label: str, recall: float | None) -> list[Cell]:
    groups, prevalence = answer["per_class"][label], answer["input"]["prevalence"].get(label)
    twin, given = groups.get(_BALANCED, {}), answer["input"]
    return [
        (Name(label),),
        "" if given["content"] == Content.rates else whole(groups["prevalence_sensitive"][SUPPORT]),
        Estimate(recall, *ends_of(answer, f"{RECALL}@{write_label(label)}"), moves=False),
        _taken_for(given, label),
        *(Estimate(each) for each in (precision_of(answer, label), twin.get(PRECISION))),
        *(Estimate(each) for each in (groups["prevalence_sensitive"].get(F1), twin.get(F1))),
        "" if prevalence is None else percent(prevalence),
    ]


def _taken_for(given: Json, label: str) -> Words | None:
    """Return the classes that samples of a class are most often taken for."""
    if given.get("confusion_matrix") is None:
        return ""
    counts = given["confusion_matrix"][given["labels"].index(label)]
    wrong = [
        (-count, other) for other, count in zip(given["labels"], counts, strict=True) if count > 0 and other != label
    ]
    taken = [part for count, other in sorted(wrong)[:3] for part in (", ", Name(other), f" ({whole(-count)})")]
    return tuple(taken[1:]) or ("none" if any(counts) else None)


def _mistakes(labels: Sequence[str], counts: Sequence[Sequence[float]], only: frozenset[Medium]) -> Table:
    """Return the largest entries beside the diagonal."""
    found = sorted(mistakes_of(counts), key=lambda one: -one.cases)
    rows: list[list[Cell]] = [
        [(Name(labels[actual]),), (Name(labels[predicted]),), f"{whole(count)} of {whole(n)}", share(count / n)]
        for actual, predicted, count, n in found[:_MOST_MISTAKES]
    ]
    names = Column("most frequent mistakes", Kind.NAME, cut=28), Column("taken for", Kind.NAME, cut=26)
    columns = [*names, Column("cases", Kind.NUMBER), Column("share", Kind.NUMBER)]
    return Table("Most frequent mistakes", columns, [Group(rows)], only=only)


# --- the rest --------------------------------------------------------------------------------------------------------


def _parts(answer: Json, identifier: str | None) -> Iterator[Section]:
    """Yield the sections that pages load behind everything else."""
    yield Section("figures", "Figures", [Figures("Curves, calibration and other figures of this run")])
    # Of samples of one class nothing is known of the others.
    several = sum(share > 0 for share in (answer["input"].get("prevalence") or {}).values()) > 1
    if answer["input"].get("confusion_matrix") is not None and several and identifier is not None:
        said = "Other shares, thresholds and costs"
        yield Section("simulator", "What if a class were rarer, or errors cost more?", [Figures(said)])


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
    task = task_in(answer)
    rows: list[list[Cell]] = [
        [
            _several("all at equal class prevalence" if one == "*" else spoken(one, task) for one in metrics),
            _several(filter(None, labels)) or "all together",
            sentence(why),
        ]
        for why, (metrics, labels) in list(found.items())[:_MOST_UNDEFINED]
    ]
    columns = [Column("Metric"), Column(class_word(answer).capitalize()), Column("Why")]
    blocks: list[Block] = []
    if undefined:
        first, rest = undefined[0], len(undefined) - 1
        name = first["metric"] if first.get("class") is None else f"{first['metric']}@{write_label(first['class'])}"
        said, more = (f"{len(undefined)} metrics. ", f' {rest} more; reasons in "undefined".') if rest else ("", "")
        blocks += [
            Table("Values that do not exist", columns, [Group(rows)], style="top_", only=PAGE),
            Said("no value", f"{said}{name}: {first['reason']}.{more}", SHORT),
        ]
    if answer.get("id") is None:
        blocks.append(Said("more", 'JSON has all metrics. "intervals": "all" adds the missing limits.', SHORT))
    lede = "They are shown as –, never as 0, and no mean is taken over them."
    return Section("undefined", "Values that do not exist", blocks, lede)


def _several(names: Iterable[str]) -> str:
    kept = list(names)
    return ", ".join(kept[:_SEVERAL]) + (f" and {len(kept) - _SEVERAL} more" if len(kept) > _SEVERAL else "")


# --- records ---------------------------------------------------------------------------------------------------------


def _lines(answer: Json) -> Iterator[Sequence[str | float | None]]:
    """Yield a line for every value: overall, of each class, requested, and of each decision that is no class; with its
    limits, or why there is none.
    """
    balanced, positive = answer.get("intervals_at_balanced_prevalence", {}), answer["input"].get("positive")
    reasons = {(one["metric"], one.get("class"), one.get("group")): one["reason"] for one in answer["undefined"]}
    for scope, label, group, metric, value in _every(answer):
        name = metric if label is None else of_class(metric if scope == "requested" else f"{metric}@*", label)
        at_equal = balanced.get(name, {})
        low, high = (at_equal.get("low"), at_equal.get("high")) if group == _BALANCED else ends_of(answer, name)
        reason = None
        if value is None:
            # Without a label a metric of two classes is that of the positive one.
            labels = (label, None) if label is not None else (None, positive)
            places = (*((metric, one, given) for one in labels for given in (group, None)), ("*", None, group))
            reason = next((reasons[place] for place in places if place in reasons), "no value")
        yield (scope, label, group, metric, value, low, high, reason)
    shares = (answer.get("decisions") or {}).get("share_of_class", {})
    for label, decisions in shares.items():
        # The decision stands in place of the group.
        for decision, one in decisions.items():
            reason = "no value" if one["value"] is None else None
            yield ("decision", label, decision, "share_of_class", one["value"], one["low"], one["high"], reason)


def _every(answer: Json) -> Iterator[tuple[str, str | None, str, str, float | None]]:
    """Yield every value: overall or of a class, its class, group and metric."""
    of_all = (("overall", None, answer["metrics"]),)
    for scope, label, groups in (*of_all, *(("class", *one) for one in answer["per_class"].items())):
        for group, metrics in groups.items():
            for key, value in metrics.items():
                yield scope, label, group, key, value
    for text, value in answer["requested"].items():
        for label, one in (value if isinstance(value, Mapping) else {None: value}).items():
            yield "requested", label, "", text, one
