"""Nothing outside the families, the advice and one named list knows a metric by its key.

What decides behaviour stands on the cards. Where code is about one metric it names the object of the family, as in
``recall.key``, which types and searches can follow.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import app
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.combinations import COMBINATIONS

ROOT = Path(app.__file__).parent
NAMES = catalogue().by_name.keys() | COMBINATIONS.keys()
# Metrics are declared here, advised, and named for what is shown and compared when nobody says what.
KNOWN = ("kernel/metrics/families/", "domain/advice.py", "domain/named_metrics.py")
# Members of requests and answers that are called like a metric: the four cells, the shares of the classes and the
# demands of a rule. Columns of tables and designs too.
MEMBERS = {"tp", "fn", "fp", "tn", "prevalence", "mean", "min", "max", "range", "ratio"}
# What is called like a metric and is something else.
OTHERS = {
    "api/plots/rates.py": {
        "balanced_accuracy",
        "fpr",
        "g_mean",
        "h_mean",
        "tpr",
    },  # members of the answer with isocurves
    "api/v1/requests/metrics.py": {"max_recall"},  # a member of the request for bounds
    "kernel/streamed/rankings.py": {"auc", "average_precision", "equal_error_rate"},  # attributes of rankings
    "kernel/metrics/references.py": {  # verbal scales
        "discriminant_power",
        "likelihood_ratio_negative",
        "likelihood_ratio_positive",
        "pearson_c",
        "single_point_auc",
        "yule_q",
    },
    "kernel/samples/curves.py": {"accuracy", "lift", "precision", "recall"},  # axes and a curve
    "services/evaluate/sections/findings.py": {"auc"},  # a member of an evidence
    "api/documents/headings.py": {"recall"},  # a member of the weakest class
}
EXPRESSION = re.compile(r"(\w+)(?:[@(].*)?", re.DOTALL)


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines and texts of those that are no docstrings."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Assign(targets=[ast.Name(id="__slots__")]):
                continue
            case ast.Constant(value=str() as text):
                yield node.lineno, text
        yield from strings(node)


def named(path: Path) -> Iterator[str]:
    """Metrics that a file names in strings, alone or as the head of an expression."""
    place = path.relative_to(ROOT).as_posix()
    if place.startswith(KNOWN):
        return
    forbidden = NAMES - MEMBERS - OTHERS.get(place, set())
    source = path.read_text(encoding="utf-8")
    # Few files have such a word behind a quote, and only theirs need to be read as code.
    if forbidden.isdisjoint(re.findall(r"[\"'](\w+)", source)):
        return
    for line, text in strings(ast.parse(source)):
        found = EXPRESSION.fullmatch(text)
        if found and found[1] in forbidden:
            yield f"{place}:{line}: {text}"


def test_no_metric_is_known_by_its_key() -> None:
    found = [name for path in sorted(ROOT.rglob("*.py")) for name in named(path)]
    assert not found, "\n".join(found)


def test_what_is_said_to_be_something_else_is_there() -> None:
    for place, words in OTHERS.items():
        text = (ROOT / place).read_text(encoding="utf-8")
        assert words
        assert all(f'"{word}"' in text for word in words), place
