"""Projections to another class prevalence, other decision rules, curves, and checks of reported scores."""

from collections.abc import Mapping, Sequence
from typing import Any

from prevail.operations.asking import Asking, segment
from prevail.operations.naming import Name, Run, several
from prevail.results.listing import Facts
from prevail.results.slicing import Slices
from prevail.wire.steps import Call, Flow, operation


class Wondering(Asking):
    """Operations that save nothing."""

    @operation
    def project(
        self, /, run: Run, *, dataset: Name | None = None, split: str | None = None, **scenario: Any
    ) -> Flow[Facts]:
        """Metrics at another class prevalence: ``prevalence={"D": 0.01}``, ``prevalence_range=…`` or ``sweep=…``."""
        identifier = yield from self._identified(run, dataset, split)
        return (yield from self._facts("POST", f"/v1/evaluations/{segment(identifier)}/projections", scenario))

    @operation
    def project_input(self, /, input: Mapping[str, Any], **scenario: Any) -> Flow[Facts]:
        """Project the metrics of an input to another class prevalence; nothing is stored."""
        return (yield from self._facts("POST", "/v1/projections", {"input": dict(input), **scenario}))

    @operation
    def threshold(
        self,
        /,
        run: Run,
        objective: str = "h_mean",
        *,
        dataset: Name | None = None,
        split: str | None = None,
        **options: Any,
    ) -> Flow[Facts]:
        """The decision rule that is best for an objective, under ``constraints=[{"metric": …, "min": …}]``."""
        identifier = yield from self._identified(run, dataset, split)
        body = {"objective": objective, **options}
        return (yield from self._facts("POST", f"/v1/evaluations/{segment(identifier)}/thresholds", body))

    @operation
    def threshold_of_input(
        self,
        /,
        input: Mapping[str, Any],
        objective: str = "h_mean",
        **options: Any,
    ) -> Flow[Facts]:
        """Find the best decision rule of an input; nothing is stored."""
        body = {"input": dict(input), "objective": objective, **options}
        return (yield from self._facts("POST", "/v1/thresholds", body))

    @operation
    def slices(
        self,
        /,
        run: Run,
        by: Sequence[str] = (),
        *,
        dataset: Name | None = None,
        split: str | None = None,
        **options: Any,
    ) -> Flow[Slices]:
        """A run judged by the values of attributes, such as ``by=["sex", "site"]``; or ``search={"metric": …}``."""
        identifier = yield from self._identified(run, dataset, split)
        call = Call("POST", f"/v1/evaluations/{segment(identifier)}/slices", {}, {"by": several(by, "by"), **options})
        return (yield from self._made(Slices, call))

    @operation
    def slices_of_input(self, /, input: Mapping[str, Any], by: Sequence[str] = (), **options: Any) -> Flow[Slices]:
        """Judge an input slice by slice; nothing is stored."""
        call = Call("POST", "/v1/slices", {}, {"input": dict(input), "by": several(by, "by"), **options})
        return (yield from self._made(Slices, call))

    @operation
    def curve(
        self,
        /,
        run: Run,
        name: str,
        *,
        of: str | None = None,
        dataset: Name | None = None,
        split: str | None = None,
        **options: Any,
    ) -> Flow[Facts]:
        """The points of a curve, such as ``roc``, of a class or of all."""
        identifier = yield from self._identified(run, dataset, split)
        return (
            yield from self._facts(
                "GET", f"/v1/evaluations/{segment(identifier)}/curves/{segment(name)}", **{"class": of, **options}
            )
        )

    @operation
    def curve_of_input(
        self,
        /,
        input: Mapping[str, Any],
        name: str,
        *,
        of: str | None = None,
        **options: Any,
    ) -> Flow[Facts]:
        """Return a curve of an input; nothing is stored."""
        body = {"input": dict(input), **({} if of is None else {"class": of}), **options}
        return (yield from self._facts("POST", f"/v1/curves/{segment(name)}", body))

    @operation
    def estimate_prevalence(self, /, run: Run, **options: Any) -> Flow[Facts]:
        """Class prevalence where a model is used, from ``predicted={…}`` or ``probabilities=[…]`` without labels."""
        identifier = yield from self._identified(run)
        return (yield from self._facts("POST", f"/v1/evaluations/{segment(identifier)}/prevalence-estimates", options))

    @operation
    def bounds(self, /, run: Run | None = None, **options: Any) -> Flow[Facts]:
        """Bounds of H, of a run or of what ``classes``, ``weak``, ``recalls`` and ``target`` say."""
        if run is None:
            return (yield from self._facts("POST", "/v1/bounds/h-mean", options))
        identifier = yield from self._identified(run)
        return (yield from self._facts("POST", f"/v1/evaluations/{segment(identifier)}/bounds/h-mean", options))

    @operation
    def consistency(self, /, scores: Mapping[str, str], **options: Any) -> Flow[Facts]:
        """Could any confusion matrix have these scores? Scores are texts, which keep their decimals."""
        return (yield from self._facts("POST", "/v1/consistency-checks", {"scores": dict(scores), **options}))

    @operation
    def isocurves(self, /, tpr: float | Sequence[float], tnr: float | Sequence[float], **options: Any) -> Flow[Facts]:
        """Curves on which metrics are constant, through a point."""
        return (yield from self._facts("POST", "/v1/isocurves", {"tpr": tpr, "tnr": tnr, **options}))
