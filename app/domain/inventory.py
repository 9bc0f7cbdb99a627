"""Inventory of models and datasets, and records of deletions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestEvaluation:
    """The evaluation that was made last.

    Attributes:
        url: Its address.
    """

    id: UUID
    url: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVersionFacts:
    """Evaluations of one version of a model.

    Attributes:
        version: `null` for evaluations that name none.
        n_evaluations: How many there are.
    """

    version: str | None
    n_evaluations: int
    newest: NewestEvaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Evaluations of a model.

    Attributes:
        n_evaluations: How many there are, of all versions.
        n_versions: How many versions have an evaluation.
        versions: Of these the 1,000 with the newest evaluations, newest first.
    """

    name: str
    n_evaluations: int
    newest: NewestEvaluation
    n_versions: int
    versions: Sequence[ModelVersionFacts]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPartFacts:
    """Evaluations of one split of one version of a dataset.

    Attributes:
        version: `null` for evaluations that name none.
        split: `null` for evaluations that name none.
        n_evaluations: How many there are.
    """

    version: str | None
    split: str | None
    n_evaluations: int
    newest: NewestEvaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFacts:
    """Evaluations of a dataset.

    Attributes:
        n_evaluations: How many there are, of all versions and splits.
        n_models: How many versions of models were judged on it: the best of so many is partly the luckiest.
        splits: All that have an evaluation, by name; evaluations that name none are not among them.
        n_versions: How many pairs of a version and a split have an evaluation.
        versions: Of these the 1,000 with the newest evaluations, newest first.
    """

    name: str
    n_evaluations: int
    newest: NewestEvaluation
    n_models: int
    splits: Sequence[str]
    n_versions: int
    versions: Sequence[DatasetPartFacts]


@dataclass(frozen=True, slots=True)
class Removal:
    """Evaluations that were removed, or would be.

    Attributes:
        dry_run: Whether they were counted only.
        n_evaluations: How many evaluations.
    """

    dry_run: bool
    n_evaluations: int
