"""`prevail export`, `import` and `check`: a project as files and back, and whether its values are right."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.errors import DomainError
from app.domain.evaluation import EvaluationRecord
from app.domain.identifiers import is_project_name
from app.domain.operations import DEFAULT_PROJECT
from app.domain.options import Options
from app.kernel.metrics.catalogue import catalogue
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.reports import is_light, passes, report_alone, sections_from_json
from app.services.evaluate.sections.matrix import batch_values
from app.services.ports import ArchiveKind
from app.services.stored import options_from_json
from app.services.transfer import (
    EVALUATIONS,
    Checker,
    Discrepancy,
    Exporter,
    Importer,
    Recomputed,
)
from app.store.transfer import PostgresArchive

_MOST_SHOWN: Final = 100


def add_project_arguments(command: str, parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command."""
    if command == "import":
        parser.add_argument("--project", type=_project, help="where to (default: the project that was exported)")
    else:
        parser.add_argument("--project", type=_project, default=DEFAULT_PROJECT, help="(default: %(default)s)")
    if command != "check":
        parser.add_argument("folder", type=Path, help="with the export; docs/reference/export.md says what lies in it")


async def run_on_whole(chosen: argparse.Namespace, engine: AsyncEngine) -> tuple[str, int]:
    """Carry out a command on a database; returns what is to be printed, and the exit code.

    Raises:
        TransferError: it cannot be done; the message says why.
        StoreUnavailableError, StoreFullError: the database does not answer, or has no space left.
    """
    archive = PostgresArchive(engine)
    match chosen.command:
        case "export":
            manifest = await Exporter(archive, _tell).export(chosen.project, chosen.folder)
            counts = ", ".join(f"{manifest.rows(kind)} {kind}" for kind in (EVALUATIONS, *ArchiveKind))
            return f"{chosen.project} is in {chosen.folder}: {counts}.\n", 0
        case "import":
            added = await Importer(archive, _tell).bring_in(chosen.folder, chosen.project)
            counts = ", ".join(f"{number} {kind}" for kind, number in added.items())
            return f"Added {counts}; what was there already stayed as it was.\n", 0
    shown = 0

    def tell(found: Discrepancy) -> None:
        nonlocal shown
        shown += 1
        if shown <= _MOST_SHOWN:
            print(found)

    verdict = await Checker(archive, recompute).check(chosen.project, tell)
    lines = [f"Looked at {verdict.values} values of {verdict.evaluations} evaluations of {chosen.project}."]
    if shown > _MOST_SHOWN:
        lines.append(f"{shown - _MOST_SHOWN} more findings are not shown.")
    if verdict.of_earlier_catalogue:
        lines.append(
            f"{verdict.of_earlier_catalogue} were stored by an earlier catalogue and would be stored with other values "
            "now; their reports are computed by the present one."
        )
    if verdict.wrong:
        lines.append(f"{verdict.wrong} have something that does not follow from what is stored.")
    else:
        lines.append("Every value follows from what is stored.")
    return "\n".join(lines) + "\n", 1 if verdict.wrong else 0


def recompute(checked: Sequence[EvaluationRecord]) -> list[Recomputed]:
    """Values of some evaluations from their inputs: those that follow quickly from matrices of one size in one pass."""
    found: dict[int, Recomputed] = {}
    light: dict[int, Question] = {}
    for place, one in enumerate(checked):
        revision = (catalogue() if one.is_scored or one.task is not None else catalogue().of_matrices).revision
        kept = None if one.part is None else sections_from_json(one.part)
        try:
            question = ask(one, _options(one))
            if is_light(question, kept):
                light[place] = question
            else:
                found[place] = Recomputed(report_alone(question, kept).values, revision)
        except DomainError as error:
            found[place] = Recomputed({}, revision, error.detail)
    waiting = list(light)
    for those in passes([*light.values()]):
        places = [waiting[index] for index in those]
        values = batch_values([light[place] for place in places]).values
        found |= {
            place: Recomputed(own, catalogue().of_matrices.revision) for place, own in zip(places, values, strict=True)
        }
    return [found[place] for place in range(len(checked))]


def _options(one: EvaluationRecord) -> Options:
    """Return the options that the stored values follow from: intervals and expressions are not stored."""
    return replace(options_from_json(one.options).without_intervals, metrics=())


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _project(text: str) -> str:
    if not is_project_name(text):
        raise argparse.ArgumentTypeError(f"expected lower-case letters, digits, dots, _ and -, got {text!r}")
    return text
