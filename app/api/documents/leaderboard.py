"""A leaderboard as a document: who is ahead, and of whom that cannot be said."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import Final

from app.api.documents.document import (
    MARKDOWN,
    PAGE,
    TEXT,
    Cell,
    Column,
    Document,
    Estimate,
    Facet,
    Group,
    Json,
    Link,
    Name,
    Records,
    Said,
    Section,
    Table,
)
from app.api.documents.reading import counted, dataset_name, interval_words, run_name, sentence
from app.domain.wording import whole

# Headings of the groups on a page: those that come first, second and later.
_GROUPS: Final = ("Cannot be told apart from the best", "Worse than the best beyond doubt", "Worse still")
_HEADS: Final = ("rank", "model", "version", "value", "low", "high", "n_samples", "evaluation", "reason")


def leaderboard_document(answer: Json) -> Document:
    """Return the document of a leaderboard.

    Args:
        answer: As it is answered in JSON.
    """
    items, metric = answer["items"], answer["metric"]
    dataset = dataset_name(answer["dataset"])
    better = f", {answer['better']} is better" if answer["better"] in ("higher", "lower") and items else ""
    lede = f"The latest evaluation of each version{better.replace(',', ';')}." if items else "There are no evaluations."
    notes, winner = _notes(answer), answer.get("winner")
    read = [Said("READ", " ".join(notes), only=TEXT)] if notes else []
    lucky = [Said("", winner["message"], only=MARKDOWN)] if winner is not None else []
    grouped = Said("", "Models of one group cannot be told apart from the best of it.", only=MARKDOWN)
    return Document(
        title=f"Models by {metric}",
        on=dataset,
        heading=(f"{dataset} by {metric}{better}", _size(answer)),
        markdown=[("### ", Name(dataset), " by ", Name(metric)), ""],
        opening=[Said("", one, word="Note", only=PAGE) for one in notes],
        sections=[Section("models", "Models", [leaderboard_table(answer), grouped, *lucky, *read], lede)],
        records=Records(
            _HEADS,
            [
                (one["rank"], one["model"]["name"], one["model"].get("version"), *(one[fact] for fact in _HEADS[3:]))
                for one in items
            ],
        ),
    )


def leaderboard_table(answer: Json) -> Table:
    """Return the models in order, in groups that cannot be told apart from their best."""
    columns = [
        Column("rank", 0, right=True, width=4),
        Column("model", 1, named=True, width=5, cut=30),
        Column(Name(answer["metric"]), 2, Facet.VALUE, right=True, width=7, style="big"),
        Column(interval_words(answer["level"]), 2, Facet.INTERVAL, width=16),
        Column("", 2, Facet.TRACK, only=TEXT | PAGE),
        Column("group", 3, right=True, only=MARKDOWN),
        Column("n", 4, right=True, only=PAGE),
    ]
    return Table("Models in order", columns, list(_groups(answer["items"])), style="lbt")


def _groups(items: Sequence[Json]) -> Iterator[Group]:
    below = list(accumulate((bool(one["separable_from_best"]) for one in items), max))
    parts = groupby(zip(items, below, strict=True), key=lambda one: (one[0]["group"], one[1]))
    ordered = [(group, apart, [one for one, _ in part]) for (group, apart), part in parts]
    numbers = list(dict.fromkeys(group for group, _, _ in ordered))
    seen: set[object] = set()
    for place, (group, apart, lines) in enumerate(ordered):
        head = ""
        if group not in seen:
            alone = len(numbers) == 1
            head = _GROUPS[min(numbers.index(group), 2)] if group is not None else "" if alone else "Not ranked"
        several = place > 0 and group is not None and len(lines) > 1 and group not in seen
        seen.add(group)
        yield Group(
            [_row(one) for one in lines],
            "  ----  clearly below the best" if apart and not (place and ordered[place - 1][1]) else "",
            head,
            f"these {len(lines)} cannot be told apart from {run_name(lines[0]['model'])}" if several else "",
        )


def _row(one: Json) -> list[Cell]:
    return [
        counted(one["rank"]),
        Link(run_name(one["model"]), f"ui/evaluations/{one['evaluation']}"),
        Estimate(one["value"], one["low"], one["high"], reason=one["reason"] or "", moves=False),
        counted(one["group"]),
        counted(one["n_samples"]),
    ]


def _size(answer: Json) -> str:
    items = answer["items"]
    if not items:
        return "no evaluations"
    sizes = {item["n_samples"] for item in items}
    parts = [f"{len(items)} {'model' if len(items) == 1 else 'models'}"]
    if len(sizes) == 1:
        parts.append(f"{whole(sizes.pop())} samples each")
    if answer["design"].get("paired"):
        parts.append("paired")
    return ", ".join(parts)


def _notes(answer: Json) -> list[str]:
    alike = sum(item["group"] == 1 for item in answer["items"])
    said = [f"The first {alike} cannot be told apart from the best."] if alike > 1 else []
    if answer.get("winner") is not None:
        said.append(answer["winner"]["message"])
    return [*said, *(f"{sentence(note)}." for note in answer["notes"])]
