"""A leaderboard as a document: who is ahead, and of whom that cannot be said."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import Final

from app.api.documents.document import (
    PAGE,
    Cell,
    Column,
    Document,
    Estimate,
    Group,
    Json,
    Kind,
    Link,
    Name,
    Records,
    Said,
    Section,
    Table,
)
from app.api.documents.reading import counted, dataset_name, interval_words, run_name, sentence
from app.domain.wording import whole

# Headings of the groups: those that come first, second and later.
_GROUPS: Final = ("Cannot be told apart from the best", "Worse than the best beyond doubt", "Worse still")
_HEADS: Final = ("rank", "model", "version", "value", "low", "high", "n_samples", "evaluation_id", "reason")


def leaderboard_document(answer: Json) -> Document:
    """Return the document of a leaderboard.

    Args:
        answer: As it is answered in JSON.
    """
    items, metric = answer["items"], answer["metric"]
    better = f", {answer['better']} is better" if answer["better"] in ("higher", "lower") else ""
    lede = "The latest evaluation of each version." if items else "There are no evaluations."
    return Document(
        title=(Name(dataset_name(answer["dataset"])), " by ", Name(metric), better),
        facts=[("", fact) for fact in _size(answer)],
        sections=[Section("models", "Models", [leaderboard_table(answer), *leaderboard_notes(answer)], lede)],
        records=Records(
            _HEADS,
            [
                (
                    *(one["rank"], one["model"]["name"], one["model"].get("version")),
                    *(one["value"], one["low"], one["high"], one["n_samples"], one["evaluation"]["id"], one["reason"]),
                )
                for one in items
            ],
        ),
    )


def leaderboard_table(answer: Json) -> Table:
    """Return the models in order, in groups that cannot be told apart from their best."""
    columns = [
        Column("rank", Kind.NUMBER),
        Column("model", Kind.NAME, cut=30),
        Column((Name(answer["metric"]),), Kind.DRAWN, style="big"),
        Column("n", Kind.NUMBER, only=PAGE),
    ]
    groups = list(_groups(answer["items"]))
    return Table("Models in order", columns, groups, interval_words(answer["level"]), rest="models", style="lbt")


def leaderboard_notes(answer: Json) -> list[Said]:
    """Return how lucky the best was, and what has to be known to read the ranks."""
    winner = [] if answer.get("winner") is None else [answer["winner"]["message"]]
    return [Said("note", one) for one in [*winner, *(f"{sentence(note)}." for note in answer["notes"])]]


def _groups(items: Sequence[Json]) -> Iterator[Group]:
    below = list(accumulate((bool(one["separable_from_best"]) for one in items), max))
    parts = groupby(zip(items, below, strict=True), key=lambda one: (one[0]["group"], one[1]))
    seen: list[object] = []
    for (group, _), part in parts:
        lines = [one for one, _ in part]
        title = ""
        if group not in seen:
            seen.append(group)
            alike = f"; these {len(lines)} cannot be told apart" if len(seen) > 1 and len(lines) > 1 else ""
            title = "Not ranked" if group is None else _GROUPS[min(len(seen), 3) - 1] + alike
        yield Group([_row(one) for one in lines], title)


def _row(one: Json) -> list[Cell]:
    return [
        counted(one["rank"]),
        Link(run_name(one["model"]), f"ui/evaluations/{one['evaluation']['id']}"),
        Estimate(one["value"], one["low"], one["high"], note=one["reason"] or "", moves=False),
        counted(one["n_samples"]),
    ]


def _size(answer: Json) -> list[str]:
    items = answer["items"]
    if not items:
        return ["no evaluations"]
    sizes = {item["n_samples"] for item in items}
    parts = [f"{len(items)} {'model' if len(items) == 1 else 'models'}"]
    if len(sizes) == 1:
        parts.append(f"{whole(sizes.pop())} samples each")
    if answer["design"].get("paired"):
        parts.append("paired")
    return parts
