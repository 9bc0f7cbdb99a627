"""What the page of a leaderboard says: who is ahead, and of whom that cannot be said."""

from collections.abc import Mapping
from typing import Any, Final

from app.api.report.numbers import decimals, shown_interval, shown_value, strip
from app.api.texts.lines import shown
from app.api.texts.names import dataset_name, run_name
from app.domain.wording import percent, whole

Json = Mapping[str, Any]
# What is said of a model beside the best, by whether the two can be told apart.
_APART: Final = {True: "clearly below the best", False: "", None: "not known"}


def leaderboard_page(answer: Json) -> dict[str, Any]:
    """Everything that the template writes.

    Args:
        answer: A leaderboard as it is answered in JSON.
    """
    items, winner = answer["items"], answer.get("winner")
    notes = ([] if winner is None else [winner["message"]]) + [
        f"{note[:1].upper()}{note[1:]}." for note in answer["notes"]
    ]
    return {
        "title": f"Models by {shown(answer['metric'])}",
        "on": dataset_name(answer["dataset"]),
        "id": None,
        "metric": shown(answer["metric"]),
        "better": answer["better"] if answer["better"] in ("higher", "lower") else "",
        "level": percent(answer["level"], None),
        "notes": [shown(note) for note in notes],
        "rows": [leaderboard_row(one) for one in items],
    }


def leaderboard_row(one: Json) -> dict[str, Any]:
    """An item of a leaderboard as templates write it."""
    return {
        "rank": "–" if one["rank"] is None else str(one["rank"]),
        "name": run_name(one["model"]),
        "id": one["evaluation"],
        "n": whole(one["n_samples"]),
        "value": shown_value(one["value"], decimals(one["low"], one["high"])),
        "interval": shown_interval(one["low"], one["high"]),
        "track": strip(one["value"], one["low"], one["high"]),
        "reason": shown(one["reason"] or ""),
        "said": shown(one["reason"] or _APART[one["separable_from_best"]]),
        "group": one["group"],
    }
