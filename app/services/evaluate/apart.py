"""Evaluations that a process computes by itself, one or many, with the records that keep them."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from app.domain.errors import DomainError
from app.domain.evaluation import EvaluationRecord
from app.domain.report import Headline, Report, Value
from app.services.evaluate.answers import Evaluation, EvaluationHeadline, answer_of, brief_answer, by_name
from app.services.evaluate.evaluations import NewEvaluation, keeps_sections, record_of
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.reports import evaluate as report_of
from app.services.evaluate.reports import headlines_of, is_light, is_quick, matrix_reports, passes
from app.services.evaluate.sections.matrix import batch_values


def evaluate_alone(new: NewEvaluation, identifier: UUID | None) -> tuple[Evaluation, EvaluationRecord | None]:
    """An evaluation and the record that keeps it under an id, in one piece: for what a process computes by itself."""
    return _with_record(new, identifier, new.report or report_of(new.source, new.options))


def evaluate_together(
    asked: Sequence[tuple[NewEvaluation, UUID | None]], *, briefly: bool
) -> list[tuple[Evaluation | EvaluationHeadline, EvaluationRecord | None] | None]:
    """The same of several at once; None for what does not follow quickly from a matrix, or cannot be answered at all.

    Args:
        asked: Each with its id.
        briefly: Headlines are enough.
    """
    answers: list[tuple[Evaluation | EvaluationHeadline, EvaluationRecord | None] | None] = [None] * len(asked)
    questions = {
        place: question
        for place, (new, _) in enumerate(asked)
        if (question := _light_question(new)) is not None and (is_quick(question) or not briefly)
    }
    waiting = list(questions)
    for those in passes(list(questions.values())):
        places = [waiting[index] for index in those]
        found = batch_values([questions[place] for place in places])
        if briefly:
            for place, values, headline in zip(places, found.values, headlines_of(found), strict=True):
                answers[place] = _briefly_with_record(*asked[place], values, headline)
        else:
            for place, report in zip(places, matrix_reports(found), strict=True):
                answers[place] = _with_record(*asked[place], report)
    return answers


def _light_question(new: NewEvaluation) -> Question | None:
    try:
        question = ask(new.source, new.options)
    except DomainError:
        # Whoever evaluates it alone is told what is wrong.
        return None
    return question if is_light(question) else None


def _briefly_with_record(
    new: NewEvaluation, identifier: UUID | None, values: Mapping[str, Value], headline: Headline
) -> tuple[EvaluationHeadline, EvaluationRecord | None]:
    if identifier is None or new.model is None or new.dataset is None:
        tags = by_name(new.tags)
        return EvaluationHeadline(model=new.model, dataset=new.dataset, tags=tags, headline=headline), None
    record = record_of(new.identifier(identifier), new, new.model, new.dataset, values, None)
    return brief_answer(record, headline), record


def _with_record(
    new: NewEvaluation, identifier: UUID | None, report: Report
) -> tuple[Evaluation, EvaluationRecord | None]:
    if identifier is None or new.model is None or new.dataset is None:
        return Evaluation(report=report, model=new.model, dataset=new.dataset, tags=by_name(new.tags)), None
    sections = report.of_samples if keeps_sections(new) else None
    record = record_of(new.identifier(identifier), new, new.model, new.dataset, report.values, sections)
    return answer_of(record, report), record
