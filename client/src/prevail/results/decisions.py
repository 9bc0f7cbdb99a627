"""Comparisons, leaderboards, checks and gates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, Self

from prevail.errors import GateFailed, GateInconclusive
from prevail.results.answer import Answer
from prevail.results.html import shown, table_html
from prevail.results.listing import Facts
from prevail.results.words import rule_text, table_text

Verdict = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of two runs in a metric: the value of ``a`` minus that of ``b``; both are ids of evaluations.

    Attributes:
        level: Of the limits.
        verdict: Of ``a`` against ``b``: ``better``, ``worse``, ``same`` or ``undecided``.
    """

    metric: str
    a: str
    b: str
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None
    probability_a_better: float | None
    probability_equivalent: float | None
    level: float | None
    verdict: str


class Comparison(Answer):
    """Runs compared: ``str(comparison)`` is the report, ``comparison.differences["h_mean"]`` has the numbers."""

    columns = (
        *("metric", "a", "b", "value_a", "value_b", "difference", "low", "high"),
        *("p_value", "p_adjusted", "probability_a_better", "probability_equivalent"),
    )

    @property
    def id(self) -> str:
        """Id of the comparison."""
        return str(self.data["id"])

    @property
    def verdict(self) -> str | None:
        """The first of two runs against the second, by the first metric; None of more than two."""
        found: str | None = self.data["headline"]["verdict"]
        return found

    @property
    def differences(self) -> dict[str, list[Difference]]:
        """Differences of all pairs, by metric, and by class where the metric has one."""
        return {
            name: [Difference(name, *(one.get(fact) for fact in _FACTS)) for one in metric["differences"]]
            for name, metric in self.data["metrics"].items()
        }

    def title(self) -> str:
        """The best run by the first metric, and those that may be as good."""
        metric = self.data["headline"]["metric"]
        found = self.data["metrics"][metric]
        values = dict(zip(self.names, found["values"], strict=True))
        best = found["best"]
        if best is None:
            return f"{' and '.join(self.names.values())}: {metric} has no value"
        # Also those whose difference to the best run is not settled.
        alike = {*(found["may_be_best"] or ())}
        for one in found["differences"]:
            low, high = one["low"], one["high"]
            is_limited = low is not None or high is not None
            # An open end excludes nothing.
            if best in (one["a"], one["b"]) and is_limited and (low or 0) <= 0 <= (high or 0):
                alike |= {one["a"], one["b"]}
        others = [name for one, name in self.names.items() if one in alike and one != best]
        rest = f"{' and '.join(others)} may be as good" if others else "no other may be as good"
        return f"{self.names[best]} is best by {metric}, {shown(values[best])}; {rest}"

    def _lines(self) -> Iterator[Sequence[Any]]:
        return ((row[0], self.names[row[1]], self.names[row[2]], *row[3:8]) for row in self.rows())

    def summary(self) -> str:
        """The verdict, then a line for every difference, with the names of the runs."""
        return f"{self.title()}\n{table_text(self.columns[:8], self._lines())}"

    @property
    def names(self) -> dict[str, str]:
        """Names of the runs by their ids."""
        return {run["id"]: _run_name(run) for run in self.data["evaluations"]}

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.title())}</b></p>{table_html(self.columns[:8], self._lines())}"

    def rows(self) -> Iterator[Sequence[Any]]:
        """A line for every metric and pair of runs."""
        runs = [run["id"] for run in self.data["evaluations"]]
        for name, metric in self.data["metrics"].items():
            values = dict(zip(runs, metric["values"], strict=True))
            for pair in metric["differences"]:
                a, b = pair["a"], pair["b"]
                yield name, a, b, values[a], values[b], *(pair.get(fact) for fact in self.columns[5:])


def _run_name(run: Mapping[str, Any]) -> str:
    model = run.get("model") or {}
    return " ".join(str(one) for one in (model.get("name"), model.get("version")) if one) or str(run["id"])


_FACTS = ("a", "b", "difference", "low", "high", *Comparison.columns[8:], "level", "verdict")


class Tournament(Answer):
    """Models compared across data sets."""

    columns = ("model", "version", "average_rank")

    @property
    def id(self) -> str:
        """Id of the comparison."""
        return str(self.data["id"])

    def title(self) -> str:
        """Number of models and data sets."""
        return f"{len(self.data['models'])} models on {len(self.data['datasets'])} data sets, by their average ranks"

    def rows(self) -> Iterator[Sequence[Any]]:
        """A line for every model."""
        for model, rank in zip(self.data["models"], self.data["average_ranks"], strict=True):
            yield model["name"], model.get("version"), rank


class Leaderboard(Answer):
    """The models of a data set, the best first."""

    columns = (
        *("rank", "model", "version", "value", "low", "high"),
        *("n_samples", "evaluation_id", "reason"),
    )

    def title(self) -> str:
        """The data set and the metric."""
        return f"{self.data['dataset']['name']} by {self.data['metric']}, the best first"

    @property
    def items(self) -> list[Mapping[str, Any]]:
        """A mapping for every model version."""
        return list(self.data["items"])

    def rows(self) -> Iterator[Sequence[Any]]:
        """A line for every model version."""
        for item in self.items:
            model = item["model"]
            values = (item.get(fact) for fact in ("value", "low", "high", "n_samples"))
            yield item["rank"], model["name"], model.get("version"), *values, item["evaluation"]["id"], item["reason"]


class History(Facts):
    """The evaluations of a model on a data set, the oldest first, and where values changed."""

    @property
    def columns(self) -> Sequence[str]:
        """A line for every evaluation and metric."""
        return (
            *("created_at", "version", "metric", "value", "low", "high"),
            *("expected_low", "expected_high", "evaluation"),
        )

    @property
    def items(self) -> list[Mapping[str, Any]]:
        """A mapping for every evaluation."""
        return list(self.data["items"])

    @property
    def changes(self) -> list[Mapping[str, Any]]:
        """A mapping for every change that was claimed."""
        return list(self.data["changes"])

    def rows(self) -> Iterator[Sequence[Any]]:
        """A line for every evaluation and metric."""
        for item in self.items:
            for metric, one in item["metrics"].items():
                expected = one["expected"] or {}
                limits = one["value"], one["low"], one["high"], expected.get("low"), expected.get("high")
                yield item["created_at"], item["version"], metric, *limits, item["evaluation"]

    def title(self) -> str:
        """The changes in sentences, or that there are none, and why values are missing."""
        measured = [one for item in self.items for one in item["metrics"].values()]
        none = "No change beyond chance." if any(one["expected"] for one in measured) else "No two values to compare."
        reasons = dict.fromkeys(str(one["reason"]) for one in measured if one.get("reason"))
        return "\n".join([*([str(one["message"]) for one in self.changes] or [none]), *reasons])

    def summary(self) -> str:
        """The changes, then the values with where they were expected."""
        rows = [
            (str(row[0])[:10], row[1] or "", row[2], *("" if one is None else f"{one:.3f}" for one in row[3:8]))
            for row in self.rows()
        ]
        return f"{self.title()}\n\n{table_text(self.columns[:8], rows)}"

    def _repr_html_(self) -> str | None:
        return Answer._repr_html_(self)


class Check(Answer):
    """An evaluation held against a gate."""

    columns = ("rule", "verdict", "value", "low", "high", "needed_samples", "message")

    @property
    def id(self) -> str:
        """Id of the check."""
        return str(self.data["id"])

    @property
    def gate(self) -> str:
        """The name of the gate."""
        return str(self.data["gate"]["name"])

    @property
    def verdict(self) -> Verdict:
        """``pass``, ``fail``, or ``inconclusive``: there is not enough data to decide."""
        found: Verdict = self.data["verdict"]
        return found

    @property
    def passed(self) -> bool:
        """Is the verdict ``pass``?"""
        return self.verdict == "pass"

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 2 inconclusive."""
        return int(self.data["exit_code"])

    @property
    def results(self) -> list[Mapping[str, Any]]:
        """Result of each rule."""
        return list(self.data["results"])

    def title(self) -> str:
        """The verdict, and of what."""
        run = _run_name(self.data["evaluation"])
        return f"{self.verdict}: gate {self.gate}, version {self.data['gate']['version']}, {run}"

    def rows(self) -> Iterator[Sequence[Any]]:
        """A line for every rule."""
        for one in self.results:
            yield rule_text(one["rule"]), one["verdict"], *(one.get(fact) for fact in self.columns[2:])

    def require(self) -> Self:
        """The check itself, when the gate passes.

        Raises:
            GateFailed, GateInconclusive: it does not; the message is the report.
        """
        if self.passed:
            return self
        kind = GateFailed if self.verdict == "fail" else GateInconclusive
        raise kind(str(self), code=f"gate_{self.verdict}", problem=self.data)
