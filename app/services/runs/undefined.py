"""Which values of runs do not exist, and why."""

import numpy as np

from app.kernel.compare.folded import FoldedRuns
from app.kernel.compare.replicates import importance
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.units import Run
from app.services.reasons import requested_values
from app.services.runs.aligned import Runs
from app.services.runs.draws.resampling import Resampling
from app.services.runs.scored_run import ScoredRun


def undefined_notes(of: Resampling) -> list[str]:
    """Which values of runs do not exist, and why."""
    notes = []
    prevalence = of.setup.prevalence
    for number, (run, record) in enumerate(zip(_lacking(of.runs), of.runs.records, strict=True)):
        for moved in (False, True):
            asked = [
                (estimand.text, estimand.expression)
                for estimand, values in zip(of.estimands, of.values, strict=True)
                if prevalence.reaches(estimand) and prevalence.moves(estimand) is moved
                if not np.isfinite(values[number]).all()
            ]
            if not asked:
                continue
            shares = prevalence.shares
            weights = run.weights
            if moved and shares is not None:
                weights = importance(run.run.strata, shares, weights)
            subject = run.run.subject(weights)
            for gap in requested_values(asked, of.runs.labels, subject)[1]:
                class_name = "" if gap.label is None else f" of class {gap.label!r}"
                notes.append(
                    f"{gap.metric}{class_name} is undefined for {record.model.name} ({record.id}): {gap.reason}."
                )
    return notes


def _lacking(runs: Runs) -> tuple[ScoredRun, ...]:
    """The runs, or others whose samples lack what those that went by lack, so that the same values are undefined."""
    folded = runs.folded
    return runs.scored if folded is None else tuple(_as_undefined(runs, folded, run) for run in range(len(runs)))


def _as_undefined(runs: Runs, folded: FoldedRuns, run: int) -> ScoredRun:
    """One sample of each class that there is, with a probability of 0 where a value is infinite."""
    y, size = np.flatnonzero(runs.counts[run].sum(axis=1)), runs.n_classes
    rows = np.full((y.size, size), 1.0 / size)
    for code in folded.ruled_out(run):
        rows[y == code] = np.eye(size)[(code + 1) % size]
    made = Scores.of_class_scores if runs.source(run).has_scores else Scores
    return ScoredRun(Run(made(y, rows), y))
