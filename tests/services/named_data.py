"""Evaluations of named data, of a request's body and what was read."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from app.api.bodies.referenced import Asked, NamedRows, ReadData, Reading
from app.api.v1.evaluations import referenced
from app.api.v1.requests.referenced import each_part, streamed
from app.api.v1.requests.referenced import with_columns as filled
from app.domain.inputs.content import DATA_FACT
from app.services.evaluate.evaluations import NewEvaluation


def with_columns(body: bytes, read: ReadData) -> NewEvaluation:
    """The evaluation of columns that were read."""
    return filled(orjson.loads(body), read)


def with_parts(body: bytes, parts: NamedRows, *, engine: Any, budget: int, folder: Path) -> NewEvaluation:
    """The evaluation of parts that are read."""
    parts.asked = replace(parts.asked, request=orjson.loads(body))
    reading = Reading(parts.source, engine, folder)
    return streamed(parts.asked.kind, each_part(parts), lambda rows: {DATA_FACT: parts.facts(rows)}, reading, budget)


def new_evaluation(body: bytes, source: Any, asked: Asked, engine: Any, folder: Path) -> NewEvaluation:
    """The evaluation as a job makes it."""
    asked = replace(asked, request=orjson.loads(body))
    return referenced.new_evaluation(Reading(source, engine, folder), asked)
