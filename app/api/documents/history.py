"""The history of a model as a document: what changed and why, then every evaluation with where it was expected."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from app.api.documents.comparison import cause_row
from app.api.documents.document import (
    ALL,
    SHORT,
    TEXT,
    Cell,
    Column,
    Document,
    Estimate,
    Figures,
    Group,
    Json,
    Kind,
    Link,
    Medium,
    MetricName,
    Name,
    Said,
    Section,
    Table,
    Words,
)
from app.api.documents.reading import counted, interval_words, naming, units_of
from app.domain.wording import PAGE, PLAIN, dataset_name, numbered, p_value, percent, printable, written_day

# Level of the limits of a history, and the share of series without a change of which any is claimed.
LEVEL, _ALPHA = 0.95, 0.05
_SHORT: Final = 40
# Changes that are one sentence; of more each has its own.
_SAID: Final = 3
# Parts of a difference below it are rounding.
_NOTHING: Final = 1e-12
_SPLIT: Final = (
    "Each change is split exactly into class prevalence and how each class is recognised; the parts add up. "
)
_TOGETHER: Final = (
    "“Before” takes all evaluations since the previous change together, “after” all up to the one that showed this one."
)
_METHOD: Final = (
    "What is expected holds over the whole series and not at each point: of 100 series without a change at most 5 "
    "would show any, however often they are looked at."
)
_HEADS: Final = (
    *("created_at", "version", "evaluation_id", "n_samples", "metric", "value", "low", "high"),
    *("expected_low", "expected_high", "reason", "change"),
)


def history_document(answer: Json) -> Document:
    """Return the document of the history of a model, which is given as it is answered in JSON."""
    items, changes = answer["items"], answer["changes"]
    lede = _SPLIT * any(map(causes_of, changes)) + _TOGETHER
    return Document(
        title=(Name(printable(answer["model"])),),
        on=("on ", Name(dataset_name(answer["dataset"], version=True))),
        facts=[("", one) for one in _facts(answer)],
        opening=[
            Said("result", _said(answer)),
            *(Said("note", _message(one)) for one in changes[1:] if len(changes) > _SAID),
        ],
        sections=[
            section_of_figures(answer),
            *([Section("changes", "Why it changed", [_changes(changes)], lede)] if changes else []),
            Section("evaluations", "All evaluations", [*_evaluations(items, changes)]),
        ],
        method=[_METHOD, *answer["notes"]],
        records=(_HEADS, _records(items, changes)),
    )


def section_of_figures(answer: Json) -> Section:
    """Return the section of the figures, whose heading says until when the metrics held."""
    return Section("figures", "Over time", [Figures("The values over time as a figure")], says=_heading(answer))


def _facts(answer: Json) -> Iterator[str]:
    items = answer["items"]
    yield numbered(len(items), "evaluations")
    if answer["next_cursor"] is not None:
        yield "more follow"
    sizes = {item["n_samples"] for item in items}
    if len(sizes) == 1 and None not in sizes:
        said = numbered(sizes.pop(), units_of(next(iter(items[0]["metrics"]))))
        yield said if len(items) == 1 else f"{said} each"
    if items:
        first, last = (day(items[place]) for place in (0, -1))
        yield first if first == last else f"{first} to {last}"
    yield f"changes claimed with one error rate of {percent(_ALPHA, None)} over the series"


def day(item: Json) -> str:
    """Return the day on which an evaluation was made."""
    return written_day(datetime.fromisoformat(item["created_at"]))


def _message(change: Json) -> Words:
    return naming(change["message"], (change["metric"],))


def unchanged(answer: Json) -> str:
    """Return what is known where no change is claimed."""
    items = answer["items"]
    if any(one["expected"] is not None for item in items for one in item["metrics"].values()):
        return "Nothing changed beyond chance."
    if answer["next_cursor"] is not None:
        return "No change is claimed."
    if len(items) == 1:
        return "One evaluation, and none before it to hold it against."
    return "No change is claimed: there are no two values with limits."


def _said(answer: Json) -> Words:
    changes = answer["changes"]
    if not changes:
        return unchanged(answer)
    if len(changes) > _SAID:
        return (f"{len(changes)} changes. The first: ", *_message(changes[0]))
    return naming(" ".join(one["message"] for one in changes), (one["metric"] for one in changes))


def _heading(answer: Json) -> tuple[str, ...]:
    """Return until when the metrics held, those of one moment together."""
    items, held = answer["items"], dict[str, list[str]]()
    alike = len({day(item) for item in items}) == 1
    moments = {
        item["evaluation"]: f"version {item['version']}" if alike and item["version"] else day(item) for item in items
    }
    first = {one["metric"]: one["to"] for one in reversed(answer["changes"])}
    for place, at in moments.items():
        held.setdefault(at, []).extend(MetricName(printable(name)) for name, to in first.items() if to == place)
    said = list[str]()
    for at, names in held.items():
        for name in names:
            said += [" and " if name == names[-1] else ", ", name] if name != names[0] else ["; ", name]
        said += [f" held until {at}"] if names else []
    return tuple(said[1:])


def _changes(changes: Sequence[Json]) -> Table:
    """Return each change with its parts."""
    columns = [Column("cause", Kind.NAME), Column("change", Kind.ESTIMATE, style="strong"), Column("p", Kind.NUMBER)]
    groups = []
    for one in changes:
        size = one["difference"]
        total = Estimate(size["value"], size["low"], size["high"], sign=True)
        rows: list[list[Cell]] = [["before", Estimate(one["before"]), ""]]
        rows += [[*cause_row(each), ""] for each in causes_of(one)]
        rows += [["after", Estimate(one["after"]), ""], ["change", total, p_value(size["p_adjusted"])]]
        groups.append(Group(rows, _message(one) if len(changes) > 1 else ""))
    return Table("Changes with their causes", columns, groups, interval_words(LEVEL), short=_SHORT, rest="causes")


def causes_of(change: Json) -> list[Json]:
    """Return the causes of a change where there are several: that of a class prevalence is itself."""
    items = (change.get("causes") or {}).get("items") or []
    return items if sum(abs(one["value"]) > _NOTHING for one in items) > 1 else []


def _evaluations(items: Sequence[Json], changes: Sequence[Json]) -> Iterator[Table]:
    """Yield the evaluations, the newest first: with all metrics in one table, which in a text is one for each."""
    metrics = list(dict.fromkeys(name for item in items for name in item["metrics"]))
    yield _table(items, changes, metrics, ALL - TEXT)
    for metric in metrics:
        yield _table(items, [one for one in changes if one["metric"] == metric], [metric], TEXT)


def _table(items: Sequence[Json], changes: Sequence[Json], metrics: Sequence[str], only: frozenset[Medium]) -> Table:
    # Where they are all the same, the facts say how many.
    alike = len({item["n_samples"] for item in items}) == 1
    samples = Column("samples", Kind.NUMBER, only=SHORT - TEXT if alike else ALL)
    columns = [Column("evaluation", Kind.NAME, style="nw"), Column("version"), samples]
    for metric in metrics:
        bands = (Column("expected", only=SHORT), Column("expected", only=ALL - SHORT, style="ci nw"))
        # A text has no room for a long name above a number.
        head = "value" if only == TEXT else (MetricName(metric),)
        columns += [Column(head, Kind.ESTIMATE, style="strong"), *bands]
    said = _claims(changes, alone=len(metrics) == 1)
    rows = [
        [
            Link(day(item), f"ui/evaluations/{item['evaluation']}"),
            (Name(printable(item["version"])),) if item["version"] else "",
            counted(item["n_samples"]),
            *(cell for metric in metrics for cell in _value(item["metrics"][metric])),
            said.get(item["evaluation"], ""),
        ]
        for item in reversed(items)
    ]
    columns.append(Column("change"))
    caption = "Evaluations, the newest first"
    title = (MetricName(metrics[0]),) if only == TEXT else ""
    return Table(caption, columns, [Group(rows, title)], interval_words(LEVEL), _SHORT, "evaluations", only=only)


def _value(one: Json) -> Iterator[Cell]:
    yield Estimate(one["value"], one["low"], one["high"], note=one.get("reason") or "")
    band = one["expected"]
    for notation in (PLAIN, PAGE):
        yield "" if band is None else notation.estimate(one["value"], band["low"], band["high"])[1]


def _claims(changes: Sequence[Json], *, alone: bool) -> Mapping[str, Words]:
    """Return what changed at an evaluation, by its id: the first one after the change. A metric that is alone needs no
    name.
    """
    found: dict[str, list[str]] = {}
    for one in changes:
        said = found.setdefault(one["to"], [])
        moved = "rose" if one["difference"]["value"] > 0 else "fell"
        said += [", "] if said else []
        said += [moved] if alone else [MetricName(printable(one["metric"])), f" {moved}"]
    return {identifier: tuple(said) for identifier, said in found.items()}


def _records(items: Sequence[Json], changes: Sequence[Json]) -> Iterator[tuple[str | float | int | None, ...]]:
    said = {(one["to"], one["metric"]): one["message"] for one in changes}
    for item in items:
        for metric, one in item["metrics"].items():
            band = one["expected"] or {}
            yield (
                *(item["created_at"], item["version"], item["evaluation"], item["n_samples"], metric),
                *(one["value"], one["low"], one["high"], band.get("low"), band.get("high")),
                *(one.get("reason"), said.get((item["evaluation"], metric))),
            )
