"""Comparisons, leaderboards, gates and their checks."""

from collections.abc import Mapping, Sequence
from typing import Any

from prevail.operations.asking import Asking, check_limit, segment
from prevail.operations.naming import Name, Run, check_one_dataset, dataset_ref, model_ref, run_ref, several
from prevail.results.decisions import Check, Comparison, History, Leaderboard, Tournament
from prevail.results.listing import Facts, Listing
from prevail.wire.exchange import exchange
from prevail.wire.steps import Call, Flow, operation

_COMPARISON = "/v1/comparisons/{}"
_PAGE = 200


class Deciding(Asking):
    """Operations that decide between runs."""

    @operation
    def compare(
        self,
        /,
        *runs: Run,
        baseline: Run | None = None,
        metrics: Sequence[str] | None = None,
        rope: float | None = None,
        level: float | None = None,
        paired: str | bool | None = None,
        explain: bool | None = None,
        by: Sequence[str] | None = None,
        dataset: Name | None = None,
        split: str | None = None,
        **options: Any,
    ) -> Flow[Comparison]:
        """Compare runs: what differs, how sure that is, and where metrics disagree.

        Args:
            runs: Evaluations, ids, ``"model:version"`` or ``"tag=value"``; with ``dataset`` and ``split`` of these.
            baseline: Compare all others with this one only.
            metrics: Expressions; the usual ones when left out.
            rope: Differences up to this count as the same.
            paired: By sample ids: where they are known (``"auto"``), always (True) or never. True has samples of data
                that was named by its address read again by a job, whose end is waited for.
            explain: Split differences of metrics that prevalence moves by their causes: ``data`` has them.
            by: Attributes of samples, in whose slices runs are compared too: ``data["slices"]``.
            options: Further members of the body of ``POST /v1/comparisons``.
        """
        named = [run_ref(one, dataset, split) for one in runs]
        reference = None if baseline is None else run_ref(baseline, dataset, split)
        if reference is not None and reference not in named:
            named.append(reference)
        body = _given(evaluations=named, baseline=reference, metrics=metrics, rope=rope, level=level, paired=paired)
        body |= _given(explain=explain, by=None if by is None else several(by, "by"))
        return (
            yield from self._made(Comparison, Call("POST", "/v1/comparisons", {}, {**body, **options}), _COMPARISON)
        )

    @operation
    def compare_across_datasets(
        self, /, metric: str, models: Sequence[Name], datasets: Sequence[Name], **options: Any
    ) -> Flow[Tournament]:
        """Compare models over several data sets: average ranks, and which of them may be as good as the best."""
        body = {
            "metric": metric,
            "models": [model_ref(one) for one in models],
            "datasets": [dataset_ref(one) for one in datasets],
            **options,
        }
        call = Call("POST", "/v1/comparisons/across-datasets", {}, body)
        return (yield from self._made(Tournament, call, _COMPARISON))

    @operation
    def comparison(self, identifier: str) -> Flow[Comparison | Tournament]:
        """A saved comparison."""
        call = Call("GET", _COMPARISON.format(segment(identifier)))
        data = yield from self._answered(call)
        return (Tournament if "average_ranks" in data else Comparison)(data, call, self.ask)

    @operation
    def comparisons(self, /, *, limit: int | None = 1000, **filters: Any) -> Flow[Listing]:
        """Kept comparisons, the latest first; with ``evaluation`` or ``model`` only those of it."""
        return (yield from self._listed("/v1/comparisons", limit, **filters))

    @operation
    def delete_comparison(self, identifier: str) -> Flow[None]:
        """Delete a saved comparison for good. The evaluations that it compares stay."""
        yield from exchange(Call("DELETE", _COMPARISON.format(segment(identifier))), self.retries)

    @operation
    def leaderboard(
        self,
        /,
        dataset: Name,
        metric: str | None = None,
        *,
        split: str | None = None,
        where: Sequence[str] = (),
        limit: int | None = None,
        **options: Any,
    ) -> Flow[Leaderboard]:
        """The models of a data set, the best first, and which of them may be the best.

        Runs on several splits are not ranked together: that raises InvalidInput, which names the splits.

        Args:
            dataset: ``"name"`` or ``"name:version"``.
            metric: An overall metric, or another expression; without one what is usual for what was judged.
            split: Of the data set.
            where: Conditions on stored values, such as ``["mcc>=0.5"]``: who does not satisfy them is left out.
            limit: Lines at most.
            options: Other parameters of the request.
        """
        place = dataset_ref(dataset, split) or {}
        params = {
            "dataset": place.get("name"),
            "dataset_version": place.get("version"),
            "split": place.get("split"),
            "metric": metric,
            "where": several(where, "where"),
            "limit": limit,
            **options,
        }
        found = yield from self._made(Leaderboard, Call("GET", "/v1/leaderboard", params))
        check_one_dataset(
            (item["evaluation"]["dataset"] for item in found.data["items"]), f"the runs on {place['name']}"
        )
        return found

    @operation
    def history(
        self,
        /,
        model: str,
        dataset: Name,
        *metrics: str,
        split: str | None = None,
        created_after: Any = None,
        limit: int | None = 1000,
    ) -> Flow[History]:
        """The values of a model on a data set over time, and where they changed beyond chance.

        Args:
            model: Its name; all versions are one series.
            dataset: ``"name"`` or ``"name:version"``.
            metrics: Expressions with one value; that of leaderboards when left out.
            created_after: The series begins at this moment.
            limit: Evaluations at most, the oldest; changes are those of all.
        """
        check_limit(limit)
        place = dataset_ref(dataset, split) or {}
        params = {
            "dataset": place.get("name"),
            "dataset_version": place.get("version"),
            "split": place.get("split"),
            "metric": list(metrics),
            "created_after": created_after,
        }
        path, items, page = f"/v1/models/{segment(model)}/history", list[Any](), dict[str, Any]()
        while (cursor := page.get("next_cursor")) is not None or not page:
            if limit is not None and len(items) >= limit:
                break
            size = _PAGE if limit is None else min(_PAGE, limit - len(items))
            call = Call("GET", path, {**params, "limit": size, "cursor": cursor})
            page = yield from self._answered(call)
            items += page["items"]
        return History({"items": items, "changes": page["changes"], "next_cursor": page["next_cursor"]})

    @operation
    def check(
        self,
        gate: str,
        run: Run,
        baseline: Run | None = None,
        *,
        dataset: Name | None = None,
        split: str | None = None,
    ) -> Flow[Check]:
        """Hold an evaluation against a gate. A verdict is never raised: `Check.require` does that.

        A run that is named by its model is looked for on the data set that the gate is for. Where the gate is for any,
        and the model has runs on several, that raises InvalidInput, which names them.
        """
        reference = None if baseline is None else run_ref(baseline, dataset, split)
        named = run_ref(run, dataset, split)
        path = f"/v1/gates/{segment(gate)}/checks"
        if not isinstance(named, str):
            found = yield from self._answered(Call("GET", f"/v1/gates/{segment(gate)}"))
            if not found.get("applies_to"):
                named = yield from self._identified(run, dataset, split)
        body = _given(evaluation=named, baseline=reference)
        return (yield from self._made(Check, Call("POST", path, {}, body), f"{path}/{{}}"))

    @operation
    def read_check(self, gate: str, identifier: str) -> Flow[Check]:
        """A check as it was answered."""
        return (yield from self._made(Check, Call("GET", f"/v1/gates/{segment(gate)}/checks/{segment(identifier)}")))

    @operation
    def checks(
        self,
        gate: str | None = None,
        *,
        verdict: str | None = None,
        model: str | None = None,
        limit: int | None = 1000,
    ) -> Flow[Listing]:
        """The checks of a gate, or of all, the latest first; only those with a verdict, or of a model."""
        path = "/v1/gate-checks" if gate is None else f"/v1/gates/{segment(gate)}/checks"
        return (yield from self._listed(path, limit, verdict=verdict, model=model))

    @operation
    def put_gate(
        self,
        name: str,
        rules: Sequence[Mapping[str, Any]],
        *,
        minimum_samples: int | None = None,
        applies_to: Mapping[str, Any] | None = None,
        description: str | None = None,
    ) -> Flow[Facts]:
        """Define a gate, such as ``[{"metric": "h_mean", "min": 0.8}]``. Another definition is a new version.

        Args:
            name: Of the gate.
            rules: All have to pass.
            minimum_samples: With fewer nothing passes.
            applies_to: The evaluations that it is for, such as ``{"dataset": {"name": "hartwig", "split": "test"}}``.
            description: For readers.
        """
        body = _given(
            rules=_rules(rules),
            minimum_samples=minimum_samples,
            applies_to=applies_to,
            description=description,
        )
        return (yield from self._facts("PUT", f"/v1/gates/{segment(name)}", body))

    @operation
    def try_gate(
        self,
        rules: Sequence[Mapping[str, Any]],
        dataset: Name | None = None,
        *,
        run: Run | None = None,
        model: Name | None = None,
        split: str | None = None,
        latest: int = 20,
        baseline: Run | None = None,
        gate: str | None = None,
        minimum_samples: int | None = None,
    ) -> Flow[Facts]:
        """Try rules on the latest evaluations of a dataset or a model, or on one run; nothing is saved.

        Args:
            rules: As of `put_gate`.
            dataset: ``"name"`` or ``"name:version"``.
            run: One alone, in place of the latest.
            model: ``"name"`` or ``"name:version"``.
            split: Of the dataset.
            latest: How many evaluations.
            baseline: Needed when a rule compares with one.
            gate: A gate whose rules are tried beside these.
            minimum_samples: As of `put_gate`.
        """
        identifier = None if run is None else (yield from self._identified(run, dataset, split))
        among: dict[str, Any] = (
            {"id": identifier}
            if run is not None
            else _given(
                latest=latest,
                dataset=dataset_ref(dataset, split),
                model=None if model is None else model_ref(model),
            )
        )
        body = _given(
            rules=_rules(rules),
            evaluations=among,
            baseline=None if baseline is None else run_ref(baseline, None, None),
            gate=gate,
            minimum_samples=minimum_samples,
        )
        return (yield from self._facts("POST", "/v1/gates/trials", body))

    @operation
    def gate(self, name: str, *, version: int | None = None) -> Flow[Facts]:
        """A gate in its latest version, or an older one."""
        return (yield from self._facts("GET", f"/v1/gates/{segment(name)}", version=version))

    @operation
    def gates(self, *, limit: int | None = 1000) -> Flow[Listing]:
        """The gates, by name."""
        return (yield from self._listed("/v1/gates", limit))

    @operation
    def gate_versions(self, name: str) -> Flow[Listing]:
        """List the versions of a gate, the latest first."""
        data = yield from self._answered(Call("GET", f"/v1/gates/{segment(name)}/versions"))
        return Listing(data["items"])

    @operation
    def delete_gate(self, name: str) -> Flow[None]:
        """End a gate; its versions and checks stay."""
        yield from exchange(Call("DELETE", f"/v1/gates/{segment(name)}"), self.retries)


def _rules(rules: Sequence[Mapping[str, Any]]) -> list[Any]:
    # What is no rule the service says.
    return [dict(one) if isinstance(one, Mapping) else one for one in several(rules, "rules")]


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
