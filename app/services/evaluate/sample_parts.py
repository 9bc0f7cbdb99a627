"""What was said of samples, as it is stored where the samples are not kept."""

from collections.abc import Mapping
from typing import Any

from app.domain.report import GroupPart, SampleParts
from app.services.evaluate.probability_reports import findings_as_json, findings_from_json, part_as_json, part_from_json

_GROUPS = "groups"


def parts_as_json(parts: SampleParts) -> dict[str, Any]:
    """The parts as one object."""
    stored = {} if parts.probabilities is None else part_as_json(parts.probabilities)
    if parts.groups is not None:
        stored[_GROUPS] = {
            "design": parts.groups.design,
            "intervals": parts.groups.intervals,
            "findings": findings_as_json(parts.groups.findings),
        }
    return stored


def parts_from_json(stored: Mapping[str, Any]) -> SampleParts:
    """The reverse of ``parts_as_json``."""
    groups = stored.get(_GROUPS)
    return SampleParts(
        # Whatever else there is belongs to the probabilities.
        probabilities=part_from_json(stored) if stored.keys() - {_GROUPS} else None,
        groups=None
        if groups is None
        else GroupPart(
            design=groups["design"],
            intervals=groups["intervals"],
            findings=findings_from_json(groups["findings"]),
        ),
    )
