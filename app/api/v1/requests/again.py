"""What an evaluation of data that was named was asked with, read off what is kept of it, to read its samples again."""

from typing import Any, Final

import orjson

from app.api.bodies.files.pieces import PIECE_ROWS
from app.api.bodies.referenced import Asked
from app.domain.data import DataFormat, DataReference
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.content import IGNORED_FACT
from app.domain.inputs.kinds import MULTILABEL, RANKING
from app.domain.inputs.probabilities import SUM_TOLERANCE
from app.domain.inputs.samples import DecidedBy

_PROBABILITIES: Final = "probabilities"
# Of `sum_tolerance`.
_MOST_TOLERANCE: Final = 0.1
# Rows with ids that are together in memory, and travel together.
_PIECE_ROWS: Final = 1 << 18


def asked_again(record: EvaluationRecord, memory_bytes: int, *, in_parts: bool = False) -> Asked:
    """What decides about the columns of data that was evaluated once: it has to be the same files.

    Args:
        record: What was kept of it.
        memory_bytes: That columns may take.
        in_parts: Are the rows to be read in parts, with their ids?

    Raises:
        ValueError: it did not come by a reference.
    """
    data = record.data
    if data is None:
        raise ValueError("expected an evaluation of data that was named")
    reference = DataReference(data["uri"], DataFormat(data["format"]), data.get("columns"), data.get("filter"))
    piece_rows = _PIECE_ROWS if in_parts else PIECE_ROWS
    labels = None if record.kind == RANKING else record.labels
    return Asked(reference, record.kind, labels, memory_bytes, piece_rows, data["digest"], in_parts)


def request_of(record: EvaluationRecord) -> bytes:
    """The request that makes the same samples of the same columns, as far as what is kept of it says."""
    source: dict[str, Any] = {"kind": record.kind}
    if record.kind == RANKING:
        return orjson.dumps({"input": {**source, "cutoffs": record.extra["cutoffs"]}})
    source["labels"] = record.labels
    if record.positive is not None:
        source["positive"] = record.labels[record.positive]
    if IGNORED_FACT in record.extra:
        source["ignore"] = [*record.extra[IGNORED_FACT]]
    if record.extra.get("rule") == DecidedBy.THRESHOLD:
        source["thresholds" if record.kind == MULTILABEL else "threshold"] = record.extra["threshold"]
    if record.kind == _PROBABILITIES:
        renormalized = "renormalized" in record.extra
        # Where no row is divided by its sum it says nothing but that all of them passed.
        usual = SUM_TOLERANCE if renormalized else _MOST_TOLERANCE
        source |= {"renormalize": renormalized, "sum_tolerance": record.extra.get("sum_tolerance", usual)}
    return orjson.dumps({"input": source})
