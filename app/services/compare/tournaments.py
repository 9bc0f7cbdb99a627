"""Comparisons across datasets: the latest evaluation of each model on each dataset, compared and kept."""

from collections.abc import Sequence
from functools import partial

from app.domain.decisions import ComparisonKind
from app.domain.errors import IncomparableRuns
from app.domain.evaluation import DatasetRef, EvaluationQuery, EvaluationRecord
from app.domain.expressions.check import parse_for_any_classes
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import of_probabilities
from app.services.acting import made_id
from app.services.compare.across_datasets import Tournament, compare_models
from app.services.compare.kept_answers import KeptAnswers
from app.services.compare.model_answers import ModelComparison
from app.services.estimands import stored_key
from app.services.runs.reading import KeptSamples, read_outputs

_MOST_LISTED = 5


class TournamentService(KeptAnswers):
    """Compares models across datasets."""

    async def create(self, project: str, asked: Tournament) -> ModelComparison:
        """Compare models and keep the answer.

        Raises:
            InvalidExpression: the metric is none, or cannot say what is better.
            IncomparableRuns: a model has no evaluation on a dataset, too few datasets are left, or a value does not
                exist.
        """
        expression = parse_for_any_classes(asked.metric, inputs=frozenset(Inputs))
        grid = await self._latest(project, asked)
        datasets, complete = _complete(asked, grid)
        samples = KeptSamples()
        records = [record for row in complete for record in row]
        of_samples = of_probabilities(expression) or any(record.task is not None for record in records)
        if of_samples and stored_key(expression) is None:
            pointers = ["/metric"] * len(records)
            samples = await read_outputs(self.labels, project, records, asked.metric, pointers=pointers)

        compared = partial(compare_models, asked, datasets, complete, samples, identifier=made_id())
        return await self.compute_and_keep(project, ComparisonKind.ACROSS_DATASETS, compared)

    async def _latest(self, project: str, asked: Tournament) -> list[list[EvaluationRecord | None]]:
        """By dataset, the latest evaluation of each model; a version or split that is None stands for all of them."""
        found = [
            [
                await self.store.page(
                    project,
                    EvaluationQuery(
                        model=model.name,
                        model_version=model.version,
                        dataset=dataset.name,
                        dataset_version=dataset.version,
                        split=dataset.split,
                        limit=1,
                    ),
                )
                for model in asked.models
            ]
            for dataset in asked.datasets
        ]
        records = await self.store.get_many(project, [page.items[0].id for row in found for page in row if page.items])
        return [[records.get(page.items[0].id) if page.items else None for page in row] for row in found]


def _complete(
    asked: Tournament, grid: Sequence[Sequence[EvaluationRecord | None]]
) -> tuple[list[DatasetRef], list[list[EvaluationRecord]]]:
    """The datasets that have every model, or a refusal that names what is missing."""
    missing = [
        f"{model.name} on {dataset.name}"
        for dataset, row in zip(asked.datasets, grid, strict=True)
        for model, record in zip(asked.models, row, strict=True)
        if record is None
    ]
    if missing and not asked.complete:
        more = f" and {len(missing) - _MOST_LISTED} more" if len(missing) > _MOST_LISTED else ""
        raise IncomparableRuns(
            f"there is no evaluation of {', '.join(missing[:_MOST_LISTED])}{more}; complete leaves such datasets out",
            pointer="/datasets",
        )
    rows = [[record for record in row if record is not None] for row in grid]
    kept = [index for index, row in enumerate(rows) if len(row) == len(asked.models)]
    return [asked.datasets[index] for index in kept], [rows[index] for index in kept]
