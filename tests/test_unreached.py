"""The check for code that no route and no command reaches."""

from pathlib import Path
from typing import Any

import pytest

from scripts.unreached import problems

FILES = {
    "app/main.py": """
from app.api import things

def create():
    return things.router

if __name__ == "__main__":
    create()
""",
    "app/api/things.py": """
from app.kernel.sums import LIMIT, Total

router = object()

@router.get("/things")
def get_things():
    return Total(LIMIT).value()
""",
    "app/kernel/sums.py": """
LIMIT = 3
SPARE = 4

class Total:
    def __init__(self, most):
        self.most = most

    def value(self):
        return _add(self.most)

    def doubled(self):
        return 2 * self.most

def _add(most):
    return most + 1

def evaluate(counts):
    return _only_for_evaluate(counts)

def _only_for_evaluate(counts):
    return counts
""",
    "app/kernel/other.py": "def lost():\n    return 1\n",
    # What is called by a test alone is not reached, whatever name the test uses.
    "tests/test_sums.py": "from app.kernel.sums import SPARE, Total, evaluate\n\nevaluate(Total(SPARE).doubled())\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_only_tests_call_is_found(tree: Path) -> None:
    assert [problem.partition(": ")[2] for problem in problems(tree, [])] == [
        "nothing reaches lost",
        "nothing reaches SPARE",
        "nothing reaches doubled",
        "nothing reaches evaluate",
        "nothing reaches _only_for_evaluate",
    ]


def test_a_name_used_elsewhere_for_something_else_hides_nothing(tree: Path) -> None:
    with (tree / "app/main.py").open("a") as file:
        file.write("\n\ndef evaluate():\n    return evaluate\n")
    assert any("sums.py" in problem and problem.endswith("reaches evaluate") for problem in problems(tree, []))


def test_an_entry_allows_what_it_names_and_is_needed(tree: Path) -> None:
    entries: list[dict[str, Any]] = [
        {"in": "app/kernel/*", "reason": "the kernel of a test"},
        {"in": "app/api/*", "names": ["gone"], "reason": "something that is gone"},
    ]
    (problem,) = problems(tree, entries)
    assert problem == "unreached.toml: gone in app/api/* needs no entry any more: something that is gone"


@pytest.mark.slow
def test_the_service_has_none() -> None:
    assert list(problems()) == []
