"""The example script, and every curl line of the documents, against a running service."""

import json
from dataclasses import dataclass
from decimal import Decimal
from types import ModuleType
from typing import Any

import httpx
import pytest

from app.kernel.metrics.catalogue import catalogue
from examples import cross_validate, history, slices
from tests.examples.documents import ROOT, blocks, run
from tests.witnesses import sk

DOCUMENTS = ("README.md", "examples/README.md", "docs/reference/answers.md", "docs/why.md")


@dataclass(frozen=True)
class Example:
    """A block of shell with curl in it, and the JSON or the text that is shown behind it, if any."""

    document: str
    shell: str
    shown: str | None

    @property
    def is_text(self) -> bool:
        return "Accept: text/" in self.shell


def examples(document: str) -> list[Example]:
    found = blocks(document)
    following = [*found[1:], ("", "")]
    return [
        Example(document, content, after if language_after in ("json", "text") else None)
        for (language, content), (language_after, after) in zip(found, following, strict=True)
        if language == "sh" and "curl" in content
    ]


def check_shown(shown: Any, answered: Any, place: str = "") -> None:
    """Every key that is shown is answered, with the same value to the digits that are shown."""
    match shown:
        case dict():
            for key, value in shown.items():
                assert key in answered, f"{place}/{key} is not in the answer"
                check_shown(value, answered[key], f"{place}/{key}")
        case list():
            assert len(shown) == len(answered), place
            for index, value in enumerate(shown):
                check_shown(value, answered[index], f"{place}/{index}")
        case Decimal():
            exponent = shown.as_tuple().exponent
            assert isinstance(exponent, int)
            assert isinstance(answered, int | float), place
            assert round(float(answered), -exponent) == float(shown), f"{place}: {answered} is shown as {shown}"
        case _:
            assert shown == answered, f"{place}: {answered} is shown as {shown}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_curl_line_of_a_document(document: str, base_url: str) -> None:
    found = examples(document)
    assert len(found) >= 2
    assert any(example.shown for example in found) or document.startswith("docs/")
    for example in found:
        output = run(example.shell, base_url)
        if example.is_text:
            assert example.shown is None or output.startswith(example.shown)
            continue
        answers = [json.loads(line) for line in output.splitlines() if line]
        assert answers, example.shell
        if example.shown is not None:
            check_shown(json.loads(example.shown, parse_float=Decimal), answers[-1])


def test_a_wrong_digit_would_be_noticed() -> None:
    with pytest.raises(AssertionError, match="shown as"):
        check_shown({"accuracy": Decimal("0.958")}, {"accuracy": 0.9571})
    with pytest.raises(AssertionError, match="not in the answer"):
        check_shown({"accuracy": Decimal("0.958")}, {"h_mean": 0.958})


def test_every_curl_line_is_in_a_block_that_is_run() -> None:
    for document in DOCUMENTS:
        lines = [line for line in (ROOT / document).read_text().splitlines() if line.lstrip().startswith("curl ")]
        run_lines = [line for example in examples(document) for line in example.shell.splitlines()]
        assert set(lines) <= set(run_lines)


def test_the_readme_counts_the_metrics() -> None:
    hundreds = len(catalogue().metrics) // 100 * 100
    assert f"Each of its more than {hundreds} metrics" in " ".join((ROOT / "README.md").read_text().split())


@pytest.mark.slow
def test_cross_validation_shows_where_accuracy_and_h_disagree(
    base_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = cross_validate.main(["--url", base_url])
    assert [(line.dataset, line.model) for line in lines] == [
        (dataset, model)
        for dataset in ("digits", "wine", "breast_cancer", "breast_cancer_screening")
        for model in ("logistic_regression", "random_forest")
    ]
    for line in lines:
        screening = line.dataset == "breast_cancer_screening"
        assert (line.accuracy - line.h_mean > 0.1) == screening
        assert ("accuracy_overstates" in line.findings) == screening
    highest = max(lines, key=lambda line: line.accuracy)
    lowest = min(lines, key=lambda line: line.h_mean)
    assert highest.dataset == lowest.dataset == "breast_cancer_screening"
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2].startswith(f"by accuracy  best: breast_cancer_screening / {highest.model}")
    assert printed[-1].endswith(f"worst: breast_cancer_screening / {lowest.model}")
    # The table of the document: the same rows and, whatever the release of scikit-learn, about the same numbers.
    shown = next(content for language, content in blocks("examples/README.md") if language == "text").splitlines()
    assert shown[0] == printed[0]
    for ours, theirs in zip(shown[1:9], printed[1:9], strict=True):
        assert ours.split()[:2] == theirs.split()[:2]
        assert float(ours.split()[2]) == pytest.approx(float(theirs.split()[2]), abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("example", "document"), [(slices, "docs/slices.md"), (history, "examples/README.md")])
def test_the_documents_show_what_the_examples_print(
    base_url: str, capsys: pytest.CaptureFixture[str], example: ModuleType, document: str
) -> None:
    example.main(["--url", base_url])
    printed = capsys.readouterr().out
    assert any(language == "text" and content in printed for language, content in blocks(document))


def test_what_is_posted_is_what_scikit_learn_scores(base_url: str) -> None:
    wine = next(dataset for dataset in cross_validate.datasets() if dataset.name == "wine")
    folds = cross_validate.predicted_folds(cross_validate.models()["random_forest"], wine)
    with httpx.Client(base_url=base_url) as service:
        line = cross_validate.read(service, cross_validate.post(service, wine, "forest", folds))
    actual = [label for fold in folds for label in fold["y_true"]]
    predicted = [label for fold in folds for label in fold["y_pred"]]
    recalls = sk.recall_score(actual, predicted, average=None)
    assert sorted(actual) == sorted(wine.classes.tolist())
    assert line.accuracy == pytest.approx(sk.accuracy_score(actual, predicted), rel=1e-12)
    assert line.h_mean == pytest.approx(len(recalls) / sum(1 / recalls), rel=1e-12)
    assert line.recall == pytest.approx(min(recalls), rel=1e-12)
