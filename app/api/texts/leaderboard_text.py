"""A leaderboard as a text: who is ahead, and of whom that cannot be said."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.api.texts.lines import Style, Track, columns_of, left, limits, opposite, right, shortened, shown, wrapped
from app.api.texts.names import dataset_name, run_name
from app.domain.wording import number, percent, whole


def leaderboard_text(answer: Mapping[str, Any], style: Style) -> str:
    """The lines of a leaderboard, and how to read them.

    Args:
        answer: A leaderboard as it is answered in JSON.
        style: Width and characters.
    """
    items, metric = answer["items"], shown(answer["metric"])
    if not items:
        title = opposite(f"{dataset_name(answer['dataset'])} by {metric}", "no evaluations", style.width)
        return "\n".join([*title, *_read(answer, items, style)]) + "\n"
    better = f", {answer['better']} is better" if answer["better"] in ("higher", "lower") else ""
    lines = opposite(f"{dataset_name(answer['dataset'])} by {metric}{better}", _of(answer), style.width)
    names = shortened([run_name(item["model"]) for item in items], 30)
    wide = max(5, *(columns_of(name) for name in names))
    value = max(7, min(columns_of(metric), 14), *(len(number(item["value"])) for item in items))
    track = Track.within(style.width - (8 + wide + 2 + value + 2 + 16 + 2), style)
    head = metric if columns_of(metric) <= value else "value"
    interval = left(f"{percent(answer['level'], None)} interval", 16)
    lines.append(f"  rank  {left('model', wide)}  {right(head, value)}  {interval}  {track.scale}")
    apart = False
    for item, name in zip(items, names, strict=True):
        if item["separable_from_best"] and not apart:
            apart = True
            lines.append("  ----  clearly below the best")
        rank = "-" if item["rank"] is None else str(item["rank"])
        place = f"  {right(rank, 4)}  {left(name, wide)}  {right(number(item['value']), value)}  "
        if item["value"] is None:
            lines += wrapped(place, shown(item["reason"] or ""), style.width, columns_of(place))
            continue
        drawn = track.drawn(item["value"], item["low"], item["high"])
        lines.append(f"{place}{left(limits(item['low'], item['high']), 16)}  {drawn}")
    lines += _read(answer, items, style)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _of(answer: Mapping[str, Any]) -> str:
    items = answer["items"]
    sizes = {item["n_samples"] for item in items}
    parts = [f"{len(items)} {'model' if len(items) == 1 else 'models'}"]
    if len(sizes) == 1:
        parts.append(f"{whole(sizes.pop())} samples each")
    if answer["design"].get("paired"):
        parts.append("paired")
    return ", ".join(parts)


def _read(answer: Mapping[str, Any], items: Sequence[Mapping[str, Any]], style: Style) -> list[str]:
    said = []
    alike = [item for item in items if item["group"] == 1]
    if len(alike) > 1:
        said.append(f"The first {len(alike)} cannot be told apart from the best.")
    if answer.get("winner") is not None:
        said.append(shown(answer["winner"]["message"]))
    said += [shown(note[:1].upper() + note[1:]) + "." for note in answer["notes"]]
    return wrapped("READ", " ".join(said), style.width) if said else []
