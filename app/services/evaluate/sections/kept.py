"""What a report says of samples, as it is stored where the samples are not kept."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.domain.findings import Finding, Severity
from app.domain.report import FoldValues, GroupedMetrics, Section, SectionName, Undefined, no_metrics

# Sections beside that of the probabilities, which stands for itself.
_NESTED = (SectionName.GROUPS, SectionName.WEIGHTS, SectionName.UNITS)


def sections_as_json(sections: Mapping[SectionName, Section]) -> dict[str, Any]:
    """The sections as one object: that of the probabilities with the others inside of it."""
    probabilities = sections.get(SectionName.PROBABILITIES)
    stored = {} if probabilities is None else _as_json(probabilities)
    return stored | {name.value: _as_json(sections[name]) for name in _NESTED if name in sections}


def sections_from_json(stored: Mapping[str, Any]) -> dict[SectionName, Section]:
    """The reverse of ``sections_as_json``."""
    found = {}
    # Whatever else there is belongs to the probabilities.
    if stored.keys() - {name.value for name in _NESTED}:
        found[SectionName.PROBABILITIES] = _from_json(stored)
    return found | {name: _from_json(stored[name.value]) for name in _NESTED if name.value in stored}


def _as_json(section: Section) -> dict[str, Any]:
    folds = section.folds
    return {
        "metrics": section.metrics,
        "per_class": section.per_class,
        "values": section.values,
        "requested": section.requested,
        "undefined": [[gap.metric, gap.code, gap.reason, gap.label] for gap in section.undefined],
        "findings": [[one.code, one.severity.value, one.message, one.evidence] for one in section.findings],
        "folds": None if folds is None else {key: [fold.values, fold.mean, fold.sd] for key, fold in folds.items()},
        "intervals": section.intervals,
        "balanced_intervals": section.balanced_intervals,
        "details": section.details,
        **({} if section.curves is None else {"curves": section.curves}),
    }


def _from_json(stored: Mapping[str, Any]) -> Section:
    folds = stored.get("folds")
    return Section(
        # Sections of groups that were stored before sections were of one kind have less, and call the details a design.
        metrics=_metrics(stored.get("metrics", {})),
        per_class={label: _metrics(groups) for label, groups in stored.get("per_class", {}).items()},
        values=stored.get("values", {}),
        requested=stored.get("requested", {}),
        undefined=tuple(Undefined(*entry) for entry in stored.get("undefined", ())),
        findings=_findings(stored["findings"]),
        folds=None
        if folds is None
        else {key: FoldValues.of(values, mean, sd) for key, (values, mean, sd) in folds.items()},
        intervals=stored.get("intervals", {}),
        balanced_intervals=stored.get("balanced_intervals", {}),
        details=stored["details"] if "details" in stored else stored["design"],
        curves=stored.get("curves"),
    )


def _findings(stored: Sequence[Sequence[Any]]) -> tuple[Finding, ...]:
    return tuple(Finding(code, Severity(severe), message, evidence) for code, severe, message, evidence in stored)


def _metrics(stored: Mapping[str, Any]) -> GroupedMetrics:
    found = no_metrics()
    # Of samples nothing is stored at balanced prevalence by older versions.
    found.update(stored)  # type: ignore[typeddict-item]  # as it was written
    return found
