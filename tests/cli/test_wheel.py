"""The wheel of the service works without a clone."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_wheel_has_the_migrations(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("app", "alembic"):
        shutil.copytree(ROOT / folder, clone / folder, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "alembic.ini", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, clone / name)
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(clone),
    ]
    subprocess.run(build, check=True, timeout=300)
    installed = tmp_path / "installed"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(installed)
    shutil.rmtree(clone)
    code = (
        "import sys, app; from app.cli import alembic_config; from alembic.script import ScriptDirectory;"
        "from app.store.database.engine import expected_revision;"
        "print(app.__file__, expected_revision(), *ScriptDirectory.from_config(alembic_config()).get_heads())"
    )
    env = {"PYTHONPATH": str(installed)}
    ran = subprocess.run([sys.executable, "-c", code], env=env, cwd="/", capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    place, expected, head = ran.stdout.split()
    assert place.startswith(str(installed))
    # What the service asks its database for is what the migrations make of it.
    assert expected == head
