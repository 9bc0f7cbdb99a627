"""A leaderboard as a document: who is ahead, and among whom the best model is."""

from collections.abc import Iterator
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
    MetricName,
    Name,
    Said,
    Section,
    Table,
)
from app.api.documents.reading import counted, interval_words, moves_with_prevalence, units_of
from app.domain.wording import dataset_name, numbered, percent, run_name, sentence

_HEADS: Final = ("rank", "model", "version", "value", "low", "high", "n_samples", "evaluation_id", "reason")


def leaderboard_document(answer: Json) -> Document:
    """Return the document of a leaderboard, which is given as it is answered in JSON."""
    items, metric = answer["items"], answer["metric"]
    better = f", {answer['better']} is better" if answer["better"] in ("higher", "lower") else ""
    lede = "The latest evaluation of each version." if items else "There are no evaluations."
    return Document(
        title=(Name(dataset_name(answer["dataset"])), " by ", MetricName(metric), better),
        facts=[("", fact) for fact in _size(answer)],
        sections=[Section("models", "Models", [leaderboard_table(answer), *leaderboard_notes(answer)], lede)],
        records=(
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
    """Return the models in order, those first among which the best one is."""
    columns = [
        Column("rank", Kind.NUMBER),
        Column("model", Kind.NAME, cut=30),
        Column((MetricName(answer["metric"]),), Kind.DRAWN, style="big"),
        Column("n", Kind.NUMBER, only=PAGE),
    ]
    moves = moves_with_prevalence(answer["metric"])
    groups = list(_groups(answer, moves=moves))
    return Table("Models in order", columns, groups, interval_words(answer["level"]), rest="models", style="lbt")


def leaderboard_notes(answer: Json) -> list[Said]:
    """Return how lucky the best was, and what has to be known to read the ranks."""
    winner = [] if answer.get("winner") is None else [answer["winner"]["message"]]
    return [Said("note", one) for one in [*winner, *(f"{sentence(note)}." for note in answer["notes"])]]


def _groups(answer: Json, *, moves: bool | None) -> Iterator[Group]:
    """Yield the models that may be the best, the others, and those of which neither is known."""
    items, winner, level = answer["items"], answer["winner"], percent(answer["level"], None)
    first, others, open_, unranked = list[Json](), list[Json](), list[Json](), list[Json]()
    for one in items:
        # Where nothing was drawn it is known at most which models are worse than the first.
        possible = one["may_be_best"]
        if possible is None and one["separable_from_best"] is not None:
            possible = not one["separable_from_best"]
        (unranked if one["rank"] is None else open_ if possible is None else first if possible else others).append(one)
    drawn = any(one["may_be_best"] is not None for one in first)
    # The first was chosen among more than are shown, or were removed.
    best = "The best of these models" if winner is not None and winner["among"] > len(items) else "The best model"
    among = f"{best} is one of these {len(first)}" if len(first) > 1 else best
    titles = (among, "Not the best") if drawn else ("Not shown to be worse than the first", "Worse than the first")
    for lines, title in zip((first, others), titles, strict=True):
        yield Group([_row(one, moves=moves) for one in lines], f"{title}, with {level} confidence")
    yield Group([_row(one, moves=moves) for one in open_], "Whether they may be the best is not known" if first else "")
    yield Group([_row(one, moves=moves) for one in unranked], "Without a value")


def _row(one: Json, *, moves: bool | None) -> list[Cell]:
    return [
        counted(one["rank"]),
        Link(run_name(one["model"]), f"ui/evaluations/{one['evaluation']['id']}"),
        Estimate(one["value"], one["low"], one["high"], note=one["reason"] or "", moves=moves),
        counted(one["n_samples"]),
    ]


def _size(answer: Json) -> list[str]:
    items = answer["items"]
    if not items:
        return ["no evaluations"]
    sizes = {item["n_samples"] for item in items}
    parts = [numbered(len(items), "models")]
    if len(sizes) == 1 and None not in sizes:
        said = numbered(sizes.pop(), units_of(answer["metric"]))
        parts.append(said if len(items) == 1 else f"{said} each")
    if answer["design"].get("paired"):
        parts.append("paired")
    return parts
