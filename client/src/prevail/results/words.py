"""Words and tables for a terminal: what is said of members of an answer, without the signs of a language."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from prevail.results.html import shown

# In words, and as a guardrail (`bound: upper`), which fails for certain only.
_DEMANDS: Final = {
    "min": (">= {}", "not surely below {}"),
    "max": ("<= {}", "not surely above {}"),
    "not_changed_since": ("not changed since the {}",) * 2,
    "not_worse_than": ("not worse than {}", "not surely worse than {}"),
    "better_than": ("better than {}", "not surely not better than {}"),
    "equivalent_to": ("the same as {}",) * 2,
}
_LONGEST_CELL: Final = 100
# Of an object in a cell.
_MOST_MEMBERS: Final = 3
# Columns of a text; a table has all of them.
_WIDEST: Final = 250


def rule_text(rule: Mapping[str, Any]) -> str:
    """A rule in a few words, such as ``h_mean >= 0.8``."""
    if "minimum_samples" in rule:
        fewest = rule["minimum_samples"]
        return f"at least {fewest:,} sample{'s' * (fewest != 1)}"
    bound, margin = rule.get("bound"), rule.get("margin")
    asked = str(rule["metric"])
    for demand, words in _DEMANDS.items():
        if rule.get(demand) is not None:
            asked += f" {words[bound == 'upper'].format(str(rule[demand]).replace('_', ' '))}"
    return f"{asked}{'' if margin is None else f', margin {margin}'}{', by its value alone' * (bound == 'value')}"


def is_rule(one: Mapping[str, Any]) -> bool:
    """Is it a rule of a gate?"""
    return "metric" in one and any(demand in one for demand in _DEMANDS)


def flattened(item: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The members of an item and of the objects in it, each with a name; of causes the sentence that says them."""
    found: dict[str, Any] = {}
    for name, value in item.items():
        if isinstance(value, Mapping) and "because" in value:
            found[prefix + name] = value["because"]
        elif isinstance(value, Mapping) and value:
            found |= flattened(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = _words(value) if isinstance(value, list) else None if value == {} else value
    return found


def _words(one: Any) -> str:
    """A member of a list; of an object its members, and rules as they are said."""
    if isinstance(one, Mapping):
        if "verdict" in one and isinstance(one.get("rule"), Mapping):
            return f"{rule_text(one['rule'])}: {one['verdict']}"
        if is_rule(one):
            return rule_text(one)
        return " ".join(f"{name} {_words(value)}" for name, value in one.items())
    if isinstance(one, list):
        if one and all(isinstance(each, Mapping) and _is_nested(each) for each in one):
            return f"{len(one)} item{'s' * (len(one) > 1)}"
        said = [*map(_words, one)]
        are_sentences = all(each.endswith(".") for each in said)
        return (" " if are_sentences else "; " if any(", " in each for each in said) else ", ").join(said)
    return " ".join(str(one).split())


def _is_nested(one: Mapping[str, Any]) -> bool:
    """Is it an object with more members than a cell has room for?"""
    return len(one) > _MOST_MEMBERS and "verdict" not in one and not is_rule(one)


def short(value: Any) -> str:
    """The beginning of a text, in one line."""
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 3]}..."


def visible(text: str) -> str:
    """Text with what is not seen written out: names are data, and do nothing to a terminal."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def cell_text(cell: Any) -> str:
    """A value in a table."""
    if isinstance(cell, float):
        return shown(cell)
    return "-" if cell is None else visible(short(cell))


def table_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table for a terminal. Columns that are empty are left out, and those at the end that no line has room for."""
    lines = [[*map(cell_text, row)] for row in rows]
    kept = [place for place in range(len(columns)) if any(line[place] not in ("", "-") for line in lines)]
    table = [[visible(columns[place]) for place in kept], *([line[place] for place in kept] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    room = next((place for place in range(1, len(kept)) if sum(widths[: place + 1]) + 2 * place > _WIDEST), len(kept))
    written = "\n".join("  ".join(map(str.ljust, line[:room], widths)).rstrip() for line in table)
    left_out = len(kept) - room
    return f"{written}\nand {left_out} more columns: to_pandas() and JSON have them" if left_out else written
