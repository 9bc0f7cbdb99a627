"""A check as a file of JUnit, which every pipeline shows as tests: one test case per rule."""

from xml.sax.saxutils import escape, quoteattr

from prevail.results.decisions import Check
from prevail.results.words import rule_text


def junit(check: Check, *, tolerant: bool) -> str:
    """The XML. What is inconclusive is skipped, with the reason, unless it is not tolerated: then a failure."""
    model, dataset = check.data["evaluation"]["model"], check.data["evaluation"]["dataset"]
    name = " ".join(str(one) for one in (model["name"], model.get("version")) if one)
    cases, failures, skipped = [], 0, 0
    for result in check.results:
        verdict = result["verdict"]
        message = _printable(str(result.get("message", "")))
        inside = ""
        if verdict == "inconclusive" and tolerant:
            inside = f"<skipped message={quoteattr(message)}/>"
            skipped += 1
        elif verdict != "pass":
            inside = f"<failure type={quoteattr(verdict)} message={quoteattr(message)}>{escape(message)}</failure>"
            failures += 1
        case = quoteattr(_printable(rule_text(result["rule"])))
        suite = quoteattr(_printable(f"{check.gate}.{name} on {dataset['name']}"))
        cases.append(f'    <testcase classname={suite} name={case} time="0">{inside}</testcase>')
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="{skipped}"'
    title = quoteattr(_printable(f"gate {check.gate}, version {check.data['gate']['version']}"))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {counts}>", f"  <testsuite name={title} {counts}>"]
    return "\n".join([*lines, *cases, "  </testsuite>", "</testsuites>", ""])


def _printable(text: str) -> str:
    """Text without what XML cannot hold: names are data, and may have anything in them."""
    return "".join(
        one if one in "\n\t" or (one >= " " and not "\ud800" <= one <= "\udfff" and one not in "\ufffe\uffff") else "?"
        for one in text
    )
