"""What was not looked at of data that lies elsewhere."""

from app.domain.findings import Finding
from app.domain.inputs.content import DATA_FACT
from app.domain.inputs.matrices import MatrixInput


def data_findings(source: MatrixInput) -> list[Finding]:
    """What was not looked at of data that was named by a reference."""
    facts = source.facts.get(DATA_FACT, {})
    if not facts.get("sample_ids_unchecked"):
        return []
    return [
        Finding.note(
            "sample_ids_unchecked",
            "There are more rows than were held in memory, so their sample ids were not read. A sample that is there "
            "twice counts twice.",
            rows=facts["rows"],
        )
    ]
