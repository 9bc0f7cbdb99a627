"""The service inside the process."""

import asyncio
import subprocess
import sys
from pathlib import Path

import prevail
import pytest

from tests.client.conftest import MATRIX


def test_the_same_client_and_the_same_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with prevail.local(folder) as pv:
        kept = pv.evaluate(matrix=MATRIX, model="rf:7", dataset="hartwig")
        assert float(kept["h_mean"]) == pytest.approx(0.4324, abs=1e-4)
        assert str(kept).startswith("rf 7 on hartwig")
        assert pv.evaluations()[0]["id"] == kept.id
        assert "layer" in pv.plot(kept, "confusion", theme="dark")
        assert pv.page("rf:7").startswith("<!doctype html>")
        other = pv.evaluate(matrix=MATRIX, model="rf:8", dataset="hartwig")
        compared = pv.compare(kept, other, metrics=["accuracy"])
        assert compared.id in pv.comparison_page(compared.id)
        assert pv.comparison_plot(compared.id)["description"]
        assert "Harmonic mean of the recalls" in pv.history_plot("rf", "hartwig")["description"]
        assert "differences" in {one["name"] for one in pv.plots()}
        with pytest.raises(prevail.InvalidInput, match=r"matrix\[0\]\[1\]"):
            pv.evaluate(matrix=[[1, -1], [0, 1]])

    async def again() -> None:
        async with prevail.local_async(folder) as client:
            assert (await client.evaluation("rf:7")).id == kept.id

    # What is kept in a folder is there the next time.
    asyncio.run(again())


def test_what_of_much_data_cannot_be_sent_is_no_fault_of_the_service(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("prevail.uploads.inputs.STREAMED_CELLS", 1)
    monkeypatch.setattr("prevail.uploads.inputs.has_arrow", lambda: False)
    with prevail.local() as pv, pytest.raises(prevail.InvalidInput, match=r"scores\[1\]: expected finite numbers"):
        pv.evaluate([0, 1, 1], scores=[0.2, float("nan"), 0.9])
    assert not caplog.records


def test_without_the_service_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "app.inside", None)
    with pytest.raises(prevail.MissingPackage, match=r"pip install 'prevail-server\[embedded\]'"):
        prevail.local()


def test_what_keeps_it_from_starting_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(prevail.PrevailError, match="does not start"):
        prevail.local(tmp_path / "file")


@pytest.mark.slow
def test_it_ends_in_silence_however_soon(tmp_path: Path) -> None:
    code = f"import prevail\nwith prevail.local({str(tmp_path / 'data')!r}): pass"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert (ran.stdout, ran.stderr) == ("", "")


@pytest.mark.slow
def test_a_script_around_it_runs_once(tmp_path: Path) -> None:
    """Computations in processes of the service do not run the script that holds it, as Python's own processes would."""
    script = tmp_path / "script.py"
    script.write_text(
        "print('training')\n"
        "import prevail\n"
        "pv = prevail.local()\n"
        "runs = [\n"
        "    pv.evaluate([0, 1] * 60, [0, right] * 60, model=name, dataset='d', intervals='all')\n"
        "    for name, right in (('a', 1), ('b', 0))\n"
        "]\n"
        "print(type(pv.compare(*runs)).__name__)\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout == "training\nComparison\n", ran.stderr


@pytest.mark.slow
def test_it_works_in_a_thread_of_a_command_and_begins_to_fork_before_it_imports() -> None:
    """The process that others are forked from begins to import the service while this one does."""
    code = (
        "import sys, threading, app.inside, prevail\n"
        "begin = app.inside.begin_forking\n"
        "def begun():\n"
        "    print(hasattr(sys.modules.get('app.main'), 'create_app'))\n"
        "    begin()\n"
        "app.inside.begin_forking = begun\n"
        "def work():\n"
        "    with prevail.local() as pv:\n"
        "        print(pv.evaluate([0, 1] * 60, [0, 1] * 60, intervals='all').headline['n_samples'])\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout.split() == ["False", "120"], ran.stderr
