"""Runs judged slice by slice."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prevail.results.answer import Answer


class Slices(Answer):
    """A run judged slice by slice: ``str(slices)`` is the report, ``slices.rows()`` has the numbers."""

    columns = (
        *("slice", "n_samples", "metric", "value", "low", "high", "reference", "difference", "p_adjusted", "verdict"),
    )

    def rows(self) -> Iterator[Sequence[Any]]:
        """One line for each metric of each slice."""
        for one in self.data["slices"]:
            name = ", ".join(f"{attribute}={_condition(value)}" for attribute, value in one["where"].items())
            for metric, value in one["metrics"].items():
                difference = value["difference"]
                yield (
                    name,
                    one["n_samples"],
                    metric,
                    *(value[fact] for fact in ("value", "low", "high", "reference")),
                    *(difference.get(fact) for fact in ("value", "p_adjusted", "verdict")),
                )

    @property
    def worse(self) -> list[Mapping[str, Any]]:
        """The conditions of the slices that are worse than their reference in any metric, beyond chance."""
        return [
            one["where"]
            for one in self.data["slices"]
            if any(value["difference"].get("verdict") == "worse" for value in one["metrics"].values())
        ]

    def title(self) -> str:
        """Number of slices, and the findings."""
        return " ".join(
            [f"{len(self.data['slices'])} slices.", *(str(one["message"]) for one in self.data["findings"])]
        )


def _condition(value: Any) -> str:
    if not isinstance(value, Mapping):
        return "null" if value is None else str(value)
    low, high = ("" if end is None else f"{end:g}" for end in (value.get("from"), value.get("to")))
    return f"{low}..{high}"
