"""docs/tutorial.md, command by command as it is printed there, before a running service."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL)
# What starts the service and finds the command: the test has both already.
PREPARATION = ("make run\n", ". .venv/bin/activate\n")


def blocks() -> list[tuple[str, str]]:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    return [(found["language"], found["content"]) for found in FENCE.finditer(text)]


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_the_tutorial_does_what_it_says(base_url: str, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("prevail", " -m prevail"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n')
        program.chmod(0o755)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "client" / "src"),
        "PREVAIL_URL": base_url,
        "no_proxy": "*",
    }
    found = blocks()
    commands = [content for language, content in found if language == "sh"]
    assert len(commands) <= 10
    assert tuple(commands[:2]) == PREPARATION
    shown = 0
    for (language, content), (following, text) in zip(found, [*found[1:], ("", "")], strict=True):
        if language != "sh" or content in PREPARATION:
            continue
        done = subprocess.run(
            ["/bin/sh", "-c", content],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, ""), content
        if following == "text":
            assert squeezed(done.stdout).startswith(squeezed(text)), done.stdout
            shown += 1
    assert shown == 4
    assert done.stdout.splitlines()[-1] == "blocked: 1"
    assert ET.parse(tmp_path / "gate.xml").getroot().get("failures") == "2"
    assert (tmp_path / "gate.md").read_text().startswith("<!-- prevail gate=promotion dataset=hartwig split=test -->")
