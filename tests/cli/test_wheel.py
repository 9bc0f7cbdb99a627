"""The wheels of the client and of the service work without a clone."""

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from app.embedded.cluster import free_port

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import prevail
print("training")
with prevail.local() as pv:
    for version, said in (("1", [0, 1, 0, 0]), ("2", [0, 1, 1, 0])):
        pv.evaluate([0, 1, 1, 0] * 10, said * 10, model=f"m:{version}", dataset="d", intervals="all")
    print(pv.compare("m:1", "m:2").title())
"""


def built(folder: Path) -> list[Path]:
    """The wheels, made of copies, so that no build folder is left in the clone."""
    clone = folder / "clone"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in ("app", "alembic", "client"):
        shutil.copytree(ROOT / name, clone / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "alembic.ini", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, clone / name)
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*wheel, str(clone), str(clone / "client")], check=True, timeout=300)
    shutil.rmtree(clone)
    return [*folder.glob("*.whl")]


@pytest.mark.slow
def test_wheels_serve_and_evaluate_without_a_clone(tmp_path: Path) -> None:
    """Dependencies are those of this environment; its own Prevail, which is the clone, is not on the path."""
    environment, home = tmp_path / "environment", tmp_path / "home"
    home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True, timeout=60)
    python = environment / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, *map(str, built(tmp_path))], check=True, timeout=120)
    own = sysconfig.get_path("purelib", vars={"base": str(environment)})
    # A folder that is named here is searched, and the .pth files in it are not read: those name the clone.
    (Path(own) / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    (home / "script.py").write_text(SCRIPT)
    (home / "p.csv").write_text("y_true,y_pred\n0,0\n1,1\n1,0\n0,0\n")
    port = free_port()
    clean = {"HOME": str(home), "PATH": os.defpath, "PREVAIL_PORT": str(port)}

    def ran(*command: str | Path) -> str:
        done = subprocess.run(
            [environment / "bin" / command[0], *command[1:]],
            env=clean, cwd=home, capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    places = ran("python", "-c", "import app, prevail; print(app.__file__, prevail.__file__)").split()
    assert all(one.startswith(str(environment)) for one in places)
    # The script runs once, whatever processes compute for it.
    assert ran("python", "script.py") == "training\nm 2 is best by h_mean, 1.000; no other may be as good\n"
    assert "4 samples, 2 classes" in ran("prevail", "evaluate", "p.csv", "--local")
    with subprocess.Popen(
        [environment / "bin" / "prevail", "serve"],
        env=clean,
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as service:
        try:
            for _ in range(600):
                with socket.socket() as tried:
                    if tried.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert service.poll() is None
                time.sleep(0.1)
            url = f"http://127.0.0.1:{port}"
            stored = ran("prevail", "evaluate", "p.csv", "--url", url, "--model", "m:1", "--dataset", "d", "-q").strip()
            assert stored in ran("prevail", "list", "--url", url)
        finally:
            service.terminate()
            service.wait(60)
