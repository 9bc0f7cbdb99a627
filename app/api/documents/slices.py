"""Slices as a document: who is worse off and how many are lost there, then every metric slice by slice."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from app.api.documents import headings
from app.api.documents.document import (
    ALL,
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
    MetricName,
    Name,
    Said,
    Section,
    Table,
    Tag,
)
from app.api.documents.reading import counted, interval_words, key_of, naming
from app.domain.catalogue import titled
from app.domain.division import conditions_of, slice_text
from app.domain.expressions.conditions import text_of
from app.domain.named_metrics import PRECISION, RECALL
from app.domain.wording import numbered, p_value, rounded, significant, whole

_TAGS: Final = {
    "worse": Tag("fail", "worse", "worse"),
    "better": Tag("pass", "better", "better"),
    "same": Tag("note", "the same", "same"),
    "undecided": Tag("inconclusive", "cannot tell", "open"),
}
_SHORT: Final = 40
_BY_EXCESS: Final = "Sorted by the excess: how many more are lost than the reference would lose of as many."
_BY_VERDICT: Final = "What is worse stands first, what is better last."
_ADJUSTED: Final = " Adjusted: the gap, were the classes as frequent in the slice as in the reference."
# What the cases are that a rate counts.
_COUNTED: Final = {RECALL: "found", PRECISION: "right"}
_HEADS: Final = (
    *("slice", "n_samples", "metric", "value", "low", "high", "reference", "difference", "difference_low"),
    *("difference_high", "p_value", "p_adjusted", "verdict", "at_reference_prevalence", "reason"),
)


def held_against(answer: Json) -> str:
    """Return in words what slices are held against."""
    reference = answer["reference"]
    return _AGAINST[reference] if isinstance(reference, str) else slice_text(reference)


_AGAINST: Final = {"rest": "the rest", "overall": "all samples"}


def slices_document(answer: Json) -> Document:
    """Return the document of a run judged slice by slice, which is given as it is answered in JSON."""
    slices, searched, other = answer["slices"], answer["searched"], held_against(answer)
    metrics = list(dict.fromkeys(name for one in slices for name in one["metrics"]))
    number = len(slices) if searched is None else searched["slices"]
    title = f"{numbered(number, 'slices')}{'' if searched is None else ' searched'}"
    return Document(
        title=title,
        facts=[("", numbered(answer["n_samples"])), ("", f"against {other}")],
        identifier=answer["evaluation_id"],
        opening=[
            Said(one["severity"], naming(one["message"], {*metrics, *(one.get("metrics") or ())}))
            for one in answer["findings"]
        ],
        sections=[
            *(
                Section(
                    f"slices-{place}",
                    titled(name, None),
                    [_table(answer, name), *_without_p(slices, name)],
                    f"{_BY_EXCESS if _have(slices, name, 'counts') else _BY_VERDICT} Dashed: the reference, to which "
                    f"the gap is.{_ADJUSTED if _have(slices, name, 'at_reference_prevalence') else ''}",
                    headings.of_slices(
                        [(slice_text(one["where"]), one["metrics"][name]) for one in _ordered(slices, name)],
                        name,
                        other,
                    ),
                )
                for place, name in enumerate(metrics)
            ),
            Section("figures", "Figures", [Figures()]),
            *([Section("ranges", "Ranges", [_ranges(answer)])] if answer["ranges"] else []),
        ],
        method=[
            "p is adjusted over all slices and metrics (false discovery rate), that of a search for the chance of any "
            "false find."
        ],
        records=(_HEADS, _records(slices)),
    )


def _without_p(slices: Sequence[Json], metric: str) -> Iterator[Said]:
    """Yield why slices that have a difference have no p, each reason once."""
    differences = [one["metrics"][metric]["difference"] for one in slices if metric in one["metrics"]]
    reasons = Counter(one["reason"] for one in differences if one["value"] is not None and "reason" in one)
    for reason, count in reasons.items():
        yield Said("note", f"{numbered(count, 'slices')} without p: {reason}.")


def _have(slices: Sequence[Json], metric: str, member: str) -> bool:
    return any(member in one["metrics"].get(metric, ()) for one in slices)


def _table(answer: Json, metric: str) -> Table:
    """Return the slices by one metric, the largest losses first."""
    ordered = _ordered(answer["slices"], metric)
    # Texts of rates have their counts in place of what follows from these.
    besides = ALL - TEXT if _have(ordered, metric, "counts") else ALL
    room = ALL - TEXT if _have(ordered, metric, "at_reference_prevalence") else ALL
    columns = [
        Column("slice", Kind.NAME, cut=36, style="nw"),
        Column((MetricName(metric),), Kind.DRAWN, style="big"),
        Column(_COUNTED.get(key_of(metric), "counts"), Kind.NUMBER, style="nw"),
        Column("excess", Kind.NUMBER, only=room),
        Column("samples", Kind.NUMBER, only=besides & room),
        Column("gap", Kind.VALUE, only=besides),
        Column("adjusted", Kind.VALUE),
        Column("p", Kind.NUMBER, style="nw"),
        Column("verdict"),
    ]
    rows = [_row(one, one["metrics"][metric], answer["evaluation_id"]) for one in ordered]
    caption, interval = f"{titled(metric)} by slice", interval_words(answer["level"])
    return Table(caption, columns, [Group(rows)], interval, short=_SHORT, rest="slices")


def _ordered(slices: Sequence[Json], metric: str) -> list[Json]:
    """Return the slices that have a metric, the largest losses first."""
    known = [one for one in slices if metric in one["metrics"]]
    return sorted(known, key=lambda one: _order(one["metrics"][metric]), reverse=True)


def _order(value: Json) -> tuple[float, float]:
    """Return how much is lost: in counts where there are any, else by the difference."""
    counts, gap = value.get("counts"), value["difference"]["value"]
    verdict = {"worse": 1.0, "better": -1.0}.get(value["difference"].get("verdict", ""), 0.0)
    return (counts["beyond"] or 0.0, 0.0) if counts is not None else (0.0, verdict * abs(gap or 0.0))


def _row(one: Json, value: Json, run: str | None) -> list[Cell]:
    counts, difference, at = value.get("counts"), value["difference"], value.get("at_reference_prevalence")
    note, limits = value.get("reason", ""), (value["low"], value["high"])
    own = Estimate(value["value"], *limits, note=note, moves=at is not None, against=value["reference"])
    name, where = slice_text(one["where"]), text_of(conditions_of(one["where"]))
    return [
        (Name(name),) if run is None else Link(name, f"ui/evaluations/{run}", {"slice": where}),
        own,
        None if counts is None else f"{_amount(counts['hits'])} of {_amount(counts['among'])}",
        None if counts is None or counts["beyond"] is None else _signed(counts["beyond"]),
        counted(one["n_samples"]),
        Estimate(difference["value"], sign=True),
        None if at is None else Estimate(at["difference"]["value"], sign=True),
        p_value(difference["p_adjusted"]) if difference.get("p_adjusted") is not None else None,
        _TAGS[difference["verdict"]],
    ]


def _amount(count: float) -> str:
    """Write a number of cases; of weights no more digits than tell slices apart."""
    return whole(round(count) if count >= 100.0 else float(significant(count, 3)))


def _signed(count: float) -> str:
    text = rounded(count, 0)
    return text if text.startswith("-") or text == "0" else f"+{text}"


def _ranges(answer: Json) -> Table:
    columns = [
        Column("metric", Kind.NAME),
        Column("by", only=ALL - TEXT),
        Column("smallest", Kind.NAME, cut=16),
        Column("largest", Kind.NAME, cut=16),
        Column("range", Kind.ESTIMATE),
        Column("ratio", Kind.VALUE),
    ]
    rows: list[list[Cell]] = [
        [
            (MetricName(one["metric"]),),
            (Name(one["by"]),),
            (Name(slice_text(one["smallest"])),),
            (Name(slice_text(one["largest"])),),
            Estimate(one["difference"], one["low"], one["high"], note=one.get("reason", "")),
            Estimate(one["ratio"]),
        ]
        for one in answer["ranges"]
    ]
    caption = "Largest less smallest, with limits that hold though the slices were picked for their values"
    return Table(caption, columns, [Group(rows)], interval_words(answer["level"]), short=_SHORT, rest="ranges")


def _records(slices: Sequence[Json]) -> Iterator[tuple[str | float | int | None, ...]]:
    for one in slices:
        for metric, value in one["metrics"].items():
            difference, at = value["difference"], value.get("at_reference_prevalence")
            yield (
                slice_text(one["where"]),
                one["n_samples"],
                metric,
                *(value[name] for name in ("value", "low", "high", "reference")),
                *(difference.get(name) for name in ("value", "low", "high", "p_value", "p_adjusted", "verdict")),
                None if at is None else at["value"],
                value.get("reason") or difference.get("reason"),
            )
