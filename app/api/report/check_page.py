"""What the page of a check says: the verdict, then each rule, failures first."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.api.texts.check_text import rule_words, shown_limits, shown_value
from app.api.texts.lines import shown
from app.api.texts.names import dataset_name, run_name

Json = Mapping[str, Any]
_ORDER: Final = ("fail", "inconclusive", "pass")


def check_page(answer: Json) -> dict[str, Any]:
    """Everything that the template writes.

    Args:
        answer: A check as it is answered in JSON.
    """
    results = sorted(answer["results"], key=lambda one: _ORDER.index(one["verdict"]))
    run, baseline, gate = answer["evaluation"], answer.get("baseline"), answer["gate"]
    return {
        "title": f"{run_name(run['model'])}: {answer['verdict']}",
        "on": dataset_name(run["dataset"]),
        "id": answer["id"],
        "gate": shown(gate["name"]),
        "version": gate["version"],
        "verdict": answer["verdict"],
        "exit_code": answer["exit_code"],
        "said": _summary(results),
        "run": run["id"],
        "baseline": None if baseline is None else run_name(baseline["model"]),
        "created_at": answer["created_at"],
        "rules": [_rule(one) for one in results],
        "findings": [
            {
                "severity": one["severity"],
                "word": one["severity"].capitalize(),
                "head": shown(one["message"]),
                "rest": "",
            }
            for one in answer.get("findings") or ()
        ],
    }


def _summary(results: Sequence[Json]) -> str:
    """How many rules there are of each verdict."""
    counts = {word: sum(one["verdict"] == word for one in results) for word in _ORDER}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) + f" of {len(results)} rules."


def _rule(one: Json) -> dict[str, str]:
    decided = one.get("decided_by")
    return {
        "verdict": one["verdict"],
        "demand": rule_words(one["rule"]),
        "value": shown_value(one),
        "interval": shown_limits(one),
        "decided": "" if decided is None else shown(decided),
        "message": shown(one["message"]),
    }
