"""Evaluations: made of what a user has, read, listed, tagged and deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

from prevail.errors import InvalidInput, PrevailError, problem_error
from prevail.operations.asking import Asking
from prevail.operations.naming import Name, Run, dataset_ref, model_ref, run_ref, several
from prevail.results.evaluation import Evaluation
from prevail.results.listing import Facts, Listing
from prevail.uploads.arrays import listed
from prevail.uploads.bodies import COLUMNS
from prevail.uploads.estimators import by_query, predicted
from prevail.uploads.inputs import KINDS, Given, prepared
from prevail.uploads.progress import Watcher, watcher
from prevail.wire.exchange import completed, exchange
from prevail.wire.steps import Call, Flow, operation

Intervals = Literal["headline", "all", "none"]
_READ = "/v1/evaluations/{}"
# Seconds: a report of ten million rows is computed in less.
_PATIENCE = 600.0


class Evaluating(Asking):
    """Operations on evaluations."""

    def _evaluation_call(
        self,
        *,
        model: Name | None = None,
        dataset: Name | None = None,
        split: str | None = None,
        tags: Mapping[str, str] | None = None,
        metrics: Sequence[str] = (),
        intervals: Intervals | None = None,
        level: float | None = None,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
        store: bool | None = None,
        progress: bool | Watcher | None = None,
        file: str | Path | None = None,
        **given: Any,
    ) -> Call:
        """The request of `evaluate`, which says what the arguments are."""
        chosen = _options(metrics, intervals, level, seed, options)
        names = {"model": model_ref(model), "dataset": dataset_ref(dataset, split)}
        keep = all(names.values()) if store is None else store
        request: dict[str, Any] = {name: value for name, value in names.items() if value is not None}
        request |= {"tags": dict(tags)} if tags else {}
        request |= {"options": chosen} if chosen else {}
        source = Given(file=None if file is None else Path(file), **_once_named(given))
        json, parts, headers = prepared(request, source, watcher(progress))
        params = {} if keep else {"store": False}
        return Call("POST", "/v1/evaluations", params, json, parts, headers, _PATIENCE if parts is not None else None)

    @operation
    def evaluate(
        self,
        y_true: Any = None,
        y_pred: Any = None,
        *,
        probabilities: Any = None,
        scores: Any = None,
        matrix: Any = None,
        input: Mapping[str, Any] | None = None,
        file: str | Path | None = None,
        data: str | Mapping[str, Any] | None = None,
        labels: Any = None,
        positive: Any = None,
        threshold: float | Sequence[float] | None = None,
        renormalize: bool | None = None,
        sample_ids: Any = None,
        group_ids: Any = None,
        sample_weight: Any = None,
        attributes: Any = None,
        pos_label: Any = None,
        groups: Any = None,
        model: Name | None = None,
        dataset: Name | None = None,
        split: str | None = None,
        tags: Mapping[str, str] | None = None,
        metrics: Sequence[str] = (),
        intervals: Intervals | None = None,
        level: float | None = None,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
        store: bool | None = None,
        progress: bool | Watcher | None = None,
    ) -> Flow[Evaluation]:
        """Evaluate predictions, probabilities, scores, a confusion matrix, or any input of the service.

        It is saved when a model and a data set are named, and only then; ``store`` says otherwise.

        Args:
            y_true: The actual classes: a list, or an array of numpy, pandas, polars, Arrow, torch, JAX. If a sample has
                several labels, a table of 0 and 1 or lists of labels; then so is what was predicted.
            y_pred: The predicted classes.
            probabilities: n x K, columns in the order of ``labels``; a data frame names its columns itself.
            scores: Any numbers, higher for the positive class; or n x K, of classes or of labels.
            matrix: A confusion matrix of counts, rows actual.
            input: In place of these an ``input`` as the service takes it, such as folds.
            file: A Parquet, Arrow, CSV or NPZ file; the arguments above are then names of its columns.
            data: The address of files that the service reads itself, as ``s3://bucket/preds/*.parquet``, or a ``data``
                as the service takes it, with a filter, a version or labels of other files; the arguments above are
                then names of columns. A job does it, whose end is waited for.
            labels: The classes in order. A mapping translates codes into names.
            threshold: The positive class is predicted from it on; of several labels one for all or one for each.
            renormalize: Divide every row of probabilities by its sum: for rounded ones.
            sample_ids: One per sample: runs on the same samples are compared pair by pair.
            group_ids: What samples have in common, such as the patient: samples of one group are not independent.
            attributes: What slices are made of, such as ``df[["sex", "site"]]``: a data frame, or columns by name.
            pos_label, groups: What scikit-learn calls ``positive`` and ``group_ids``.
            model, dataset: ``"name"`` or ``"name:version"``.
            metrics: Metric expressions, such as ``min(recall@*)``.
            options: Further ``options`` as the service takes them.
            progress: True draws a bar of the upload, False none; a function is told of it. When left out a bar is drawn
                on a terminal and in a notebook where the upload takes more than a second.

        Raises:
            InvalidInput: the data or an option is refused; nothing was saved.
            PrevailError: another reason, see `prevail.errors`.
        """
        arguments = {name: value for name, value in locals().items() if name != "self"}
        return (yield from self._made(Evaluation, self._evaluation_call(**arguments), _READ))

    @operation
    def evaluate_model(
        self,
        /,
        estimator: Any,
        X: Any,  # noqa: N803 - as scikit-learn names it
        y_true: Any,
        **arguments: Any,
    ) -> Flow[Evaluation]:
        """Evaluate an estimator of scikit-learn, or what behaves like one: its probabilities, scores or predictions.

        Args:
            estimator: Has ``predict_proba``, else ``decision_function``, else ``predict``; ``classes_`` are its labels.
            X: What it predicts from.
            y_true: The actual classes.
            arguments: Further arguments of `evaluate`: ``model`` is the name under which it is kept.
        """
        call = self._evaluation_call(y_true=y_true, **{**predicted(estimator, X, arguments), **arguments})
        return (yield from self._made(Evaluation, call, _READ))

    @operation
    def evaluate_clusters(self, /, y_true: Any, y_pred: Any, **arguments: Any) -> Flow[Evaluation]:
        """Evaluate a clustering: the actual classes, and the cluster of each sample."""
        source = {"kind": "clustering", "y_true": listed(y_true, "y_true")[0], "y_pred": listed(y_pred, "y_pred")[0]}
        return (yield from self._made(Evaluation, self._evaluation_call(input=source, **arguments), _READ))

    @operation
    def evaluate_sets(
        self, /, y_true: Any, y_pred: Any, *, tagging: str | None = None, **arguments: Any
    ) -> Flow[Evaluation]:
        """Evaluate answers or regions: for each item the tokens or ids that are there, and those predicted for it.

        Args:
            y_true: For each item its tokens or ids.
            y_pred: Those predicted for it.
            tagging: ``"BIO"`` where the tokens are tags of sentences, whose entities are compared.
            arguments: Further arguments of `evaluate`.
        """
        source = {"kind": "sets", "y_true": listed(y_true, "y_true")[0], "y_pred": listed(y_pred, "y_pred")[0]}
        source |= {} if tagging is None else {"tagging": tagging}
        return (yield from self._made(Evaluation, self._evaluation_call(input=source, **arguments), _READ))

    @operation
    def evaluate_ranking(self, /, judgements: Any, run: Any, **arguments: Any) -> Flow[Evaluation]:
        """Evaluate rankings, in the form of trec_eval.

        Args:
            judgements: Relevance by query and item, the path of a file of qrels, or a data frame with the columns
                `query_id`, `item_id` and `relevance`.
            run: Scores by query and item, the path of a run, or such a data frame with `score`. What has no judgement
                counts as not relevant, what is judged and not in it as not retrieved, and a query that was judged and
                is not in it as 0.
            arguments: Further arguments of `evaluate`.
        """
        source = {
            "kind": "ranking",
            "judgements": by_query(judgements, "relevance"),
            "retrieved": by_query(run, "scores"),
        }
        return (yield from self._made(Evaluation, self._evaluation_call(input=source, **arguments), _READ))

    @operation
    def report_of(
        self, /, media: str = "text/plain", *, style: str = "ascii", width: int = 80, **arguments: Any
    ) -> Flow[str]:
        """The report of ``evaluate(**arguments)`` alone, so that what is not saved is sent and computed once only."""
        call = self._evaluation_call(**arguments)
        params, headers = {**call.params, "style": style, "width": width}, {**call.headers, "Accept": media}
        return (yield from completed(replace(call, params=params, headers=headers), self.retries)).text

    @operation
    def evaluate_later(self, *, request: Mapping[str, Any]) -> Flow[Facts]:
        """Evaluate by a job: the answer comes at once, and the result by `wait`.

        Args:
            request: The body of ``POST /v1/evaluations``.

        Returns:
            The job; or the evaluation, where the service has made it already.
        """
        call = Call("POST", "/v1/evaluations", {}, dict(request), None, {"Prefer": "respond-async"})
        reply = yield from exchange(call, self.retries)
        if reply.status == 202:
            return (yield from self._facts("GET", reply.headers["location"]))
        return Facts(reply.json())

    @operation
    def evaluate_many(
        self, requests: Sequence[Mapping[str, Any]], *, store: bool = True
    ) -> Flow[list[Evaluation | PrevailError]]:
        """Many evaluations in one request; each succeeds or fails on its own.

        Args:
            requests: Bodies of ``POST /v1/evaluations``; names of models and data sets may be ``"name:version"``.

        Returns:
            In the same order; in place of one that failed the error, which is not raised.
        """
        bodies = [
            {
                **one,
                **({"model": model_ref(one["model"])} if "model" in one else {}),
                **({"dataset": dataset_ref(one["dataset"])} if "dataset" in one else {}),
            }
            for one in requests
        ]
        params = {} if store else {"store": False}
        data = yield from self._answered(Call("POST", "/v1/evaluations/batch", params, {"evaluations": bodies}))
        return [
            problem_error(one["problem"])
            if one.get("evaluation") is None
            else Evaluation(
                one["evaluation"],
                Call("GET", _READ.format(one["evaluation"]["id"])) if one["evaluation"].get("id") else None,
                self.ask,
            )
            for one in data["items"]
        ]

    @operation
    def evaluate_models(
        self,
        models: Mapping[str, Mapping[str, Any]],
        y_true: str | None = None,
        /,
        *,
        data: str | Mapping[str, Any],
        dataset: Name | None = None,
        store: bool | None = None,
        **arguments: Any,
    ) -> Flow[list[Evaluation]]:
        """Evaluate many models whose predictions are columns of one table, which the service reads once.

        All evaluations are saved, or none is: when a data set is named, unless ``store`` says otherwise.

        Args:
            models: Names of the columns of each by its name: ``{"churn:7": {"y_pred": "guess_7"}}``; ``scores`` and
                ``probabilities`` in the same way.
            y_true: Name of a column, and so are further arguments, which are those of `evaluate`.

        Raises:
            InvalidInput: a model or the data is refused; nothing was saved.
            PrevailError: another reason, see `prevail.errors`.
        """
        keep = dataset is not None if store is None else store
        kind = {"kind": next((KINDS[name] for one in models.values() for name in one if name in KINDS), "predictions")}
        call = self._evaluation_call(y_true=y_true, input=kind, data=data, dataset=dataset, store=keep, **arguments)
        named = {}
        for name, columns in models.items():
            found = {"columns": {COLUMNS[one]: value for one, value in columns.items()}, **(model_ref(name) or {})}
            own = found.pop("name")
            if own in named:
                raise InvalidInput(f"models: expected one version of each, got two of {own!r}", code="duplicate")
            named[own] = found
        answer = yield from self._answered(replace(call, json={**call.json, "models": named}))
        return [
            Evaluation(one, Call("GET", _READ.format(one["id"])) if one.get("id") else None, self.ask)
            for one in answer["items"]
        ]

    @operation
    def compute(self, *, request: Mapping[str, Any]) -> Flow[Evaluation]:
        """An evaluation of a body of ``POST /v1/metrics/compute``, which keeps nothing."""
        return (yield from self._made(Evaluation, Call("POST", "/v1/metrics/compute", {}, dict(request))))

    @operation
    def evaluation(
        self, run: Run, *, dataset: Name | None = None, split: str | None = None, slice: str | None = None
    ) -> Flow[Evaluation]:
        """A saved evaluation by its id, by ``"model:version"`` or ``"tag=value"``: the latest that matches.

        ``slice`` reads its samples in a slice alone, such as ``'site="B", age<50'``.
        """
        identifier = yield from self._identified(run, dataset, split)
        return (yield from self._made(Evaluation, Call("GET", _READ.format(identifier), {"slice": slice})))

    @operation
    def evaluations(
        self,
        /,
        *,
        model: Name | None = None,
        dataset: Name | None = None,
        split: str | None = None,
        tags: Mapping[str, str] | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        sort: str | None = None,
        limit: int | None = 1000,
        **filters: Any,
    ) -> Flow[Listing]:
        """Kept evaluations, the latest first unless ``sort`` says otherwise, such as ``-h_mean``; all with limit None.

        Further filters of the service are given by their names.
        """
        of_model, of_data = model_ref(model) or {}, dataset_ref(dataset) or {}
        tag = [f"{key}:{value}" for key, value in (tags or {}).items()]
        return (
            yield from self._listed(
                "/v1/evaluations",
                limit,
                model=of_model.get("name"),
                model_version=of_model.get("version"),
                dataset=of_data.get("name"),
                dataset_version=of_data.get("version"),
                split=split,
                tag=tag,
                created_after=created_after,
                created_before=created_before,
                sort=sort,
                **filters,
            )
        )

    @operation
    def values(self, run: Run, metrics: Sequence[str] = ()) -> Flow[Facts]:
        """Values of an evaluation by canonical name, each with its limits, or the reason why it has none: those of the
        headline, or of the metric expressions that are named.
        """
        identifier = yield from self._identified(run)
        call = Call("GET", _READ.format(identifier), {"fields": "values", "metrics": several(metrics, "metrics")})
        data = yield from self._answered(call)
        return Facts(data["values"])

    @operation
    def merge(
        self,
        /,
        *runs: Run,
        mode: Literal["pooled", "folds"] = "pooled",
        model: Name | None = None,
        dataset: Name | None = None,
        split: str | None = None,
        **members: Any,
    ) -> Flow[Evaluation]:
        """Evaluate the data of several evaluations as one, and keep it; they stay as they are.

        Args:
            runs: Evaluations of one kind, ids, ``"model:version"`` or ``"tag=value"``.
            mode: All samples or counts together, or each run as a fold.
            model, dataset, split: Of the new evaluation; those of all of them when left out.
            members: Further members of the body of ``POST /v1/evaluations/merge``, such as ``tags`` and ``options``.
        """
        names = {"model": model_ref(model), "dataset": dataset_ref(dataset, split)}
        body = {"evaluations": [run_ref(run) for run in runs], "mode": mode, **members}
        body |= {name: value for name, value in names.items() if value is not None}
        return (yield from self._made(Evaluation, Call("POST", "/v1/evaluations/merge", {}, body), _READ))

    @operation
    def tag(self, run: Run, tags: Mapping[str, str | None]) -> Flow[Evaluation]:
        """Set tags of an evaluation; None takes one away, others stay."""
        identifier = yield from self._identified(run)
        path = _READ.format(identifier)
        return (yield from self._made(Evaluation, Call("PATCH", path, {}, {"tags": dict(tags)}), _READ))

    @operation
    def delete_evaluation(self, run: Run) -> Flow[None]:
        """Delete one evaluation. Comparisons and checks that used it stay as they are."""
        identifier = yield from self._identified(run)
        yield from exchange(Call("DELETE", _READ.format(identifier)), self.retries)

    @operation
    def delete_evaluations(self, /, *, dry_run: bool = False, **filters: Any) -> Flow[Facts]:
        """Delete all evaluations that pass the filters of the service, one at least, or count them; such as
        ``model="m"``, ``tag=["stage:old"]``, ``where=["h_mean<0.5"]``, ``created_before="2026-01-01"``.
        """
        return (yield from self._facts("DELETE", "/v1/evaluations", dry_run=dry_run, **filters))

    @operation
    def confusion_matrix(self, run: Run, *, normalized: str | None = None) -> Flow[Facts]:
        """The confusion matrix of an evaluation, as counts or as shares of rows, columns or all."""
        identifier = yield from self._identified(run)
        path = f"{_READ.format(identifier)}/confusion-matrix"
        return (yield from self._facts("GET", path, normalized=normalized))


# What scikit-learn calls them.
_ALSO_CALLED: Final = {"pos_label": "positive", "groups": "group_ids"}


def _once_named(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments under the names of the service.

    Raises:
        TypeError: there is no such argument.
    """
    unknown = [name for name in given if name not in {*_ALSO_CALLED, *Given.__dataclass_fields__}]
    if unknown:
        raise TypeError(
            f"there is no argument {', '.join(map(repr, unknown))} of an evaluation: see help(Client.evaluate)"
        )
    found = {name: value for name, value in given.items() if name not in _ALSO_CALLED}
    for other, name in _ALSO_CALLED.items():
        if given.get(other) is None:
            continue
        if found.get(name) is not None:
            raise InvalidInput(f"{other}: expected it or {name}, got both", code="one_of")
        found[name] = given[other]
    return found


def _options(
    metrics: Sequence[str],
    intervals: Intervals | None,
    level: float | None,
    seed: int | None,
    options: Mapping[str, Any] | None,
) -> dict[str, Any]:
    chosen = {"metrics": several(metrics, "metrics") or None, "intervals": intervals, "level": level, "seed": seed}
    return {**(options or {}), **{name: value for name, value in chosen.items() if value is not None}}
