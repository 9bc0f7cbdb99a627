"""Data that the service reads itself, asked for by the client and on the command line."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import prevail
import pytest
from prevail.command.codes import USAGE
from prevail.command.main import main
from prevail.errors import InvalidInput
from pydantic import SecretStr

from app.settings import Authentication, Settings
from tests.serving import Served

TABLE = pd.DataFrame(
    {"label": ["a", "b"] * 40, "guess": ["a", "b", "b", "b"] * 20, "p_a": [0.75, 0.25] * 40, "p_b": [0.25, 0.75] * 40}
).assign(part=range(80))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data")
    TABLE.to_parquet(place / "all.parquet")
    return place


@pytest.fixture(scope="module")
def base_url(database_url: str, folder: Path) -> Iterator[str]:
    settings = Settings(
        database_url=SecretStr(database_url), authentication=Authentication.off, data_prefixes=(str(folder),)
    )
    with Served(settings) as url:
        yield url


def test_it_is_evaluated_and_kept(pv: prevail.Client, folder: Path) -> None:
    made = pv.evaluate("label", "guess", data=f"{folder}/*.parquet", model="m", dataset="d")
    assert made.id is not None
    assert made.data["input"]["data"]["rows"] == 80
    sent = pv.evaluate(TABLE["label"], TABLE["guess"])
    assert made.confusion_matrix == sent.confusion_matrix
    where = {"uri": f"{folder}/all.parquet", "filter": "part < 20"}
    some = pv.evaluate("label", probabilities=["p_a", "p_b"], labels=["a", "b"], data=where)
    assert (some.id, some.data["input"]["n_samples"]) == (None, 20)
    assert "20 samples" in str(some)


@pytest.mark.slow
def test_its_slices_are_made_of_the_rows_again(pv: prevail.Client, folder: Path) -> None:
    names = {"early": "part"}
    run = pv.evaluate("label", "guess", attributes=names, data=f"{folder}/all.parquet", model="m", dataset="e")
    found = pv.slices(run, by=["early"], bins={"early": [40]}, metrics=["accuracy"])
    assert [one["n_samples"] for one in found.data["slices"]] == [40, 40]


@pytest.mark.slow
def test_labels_of_other_files_are_joined(
    pv: prevail.Client, folder: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    TABLE[["part", "label"]].sample(frac=1.0, random_state=1).to_csv(folder / "labels.csv", index=False)
    labels = {"data": {"uri": f"{folder}/labels.csv", "columns": {"y_true": "label"}}, "on": "part"}
    where = {"uri": f"{folder}/all.parquet", "labels": labels}
    made = pv.evaluate(y_pred="guess", data=where)
    sent = pv.evaluate(TABLE["label"], TABLE["guess"])
    assert made.confusion_matrix == sent.confusion_matrix
    code, printed, _ = command("evaluate", "--data", json.dumps(where), "--y-pred", "guess", "--filter", "part < 30")
    assert code == 0
    assert "30 samples" in printed
    code, _, said = command("evaluate", "--data", "{no", "--y-pred", "guess")
    assert code == USAGE
    assert "expected an address, or JSON" in said


@pytest.mark.slow
def test_models_of_one_table_are_evaluated_together(pv: prevail.Client, folder: Path) -> None:
    models = {"guessing:2": {"y_pred": "guess"}, "cheating": {"y_pred": "label"}}
    guessing, cheating = pv.evaluate_models(models, "label", data=f"{folder}/all.parquet", dataset="together")
    assert (guessing.data["model"], cheating.data["model"]["name"]) == (
        {"name": "guessing", "version": "2"},
        "cheating",
    )
    assert cheating["accuracy"].value == 1.0
    assert guessing.id is not None
    assert pv.evaluation(guessing.id).data == guessing.data
    shares = {"one": {"probabilities": ["p_a", "p_b"]}, "other": {"probabilities": ["p_b", "p_a"]}}
    one, other = pv.evaluate_models(shares, "label", data=f"{folder}/all.parquet", labels=["a", "b"])
    assert (one.id, other.id) == (None, None)
    losses = [each["log_loss"].value or 0.0 for each in (one, other)]
    assert 0.0 < losses[0] < losses[1]
    with pytest.raises(InvalidInput) as refused:
        pv.evaluate_models({"no": {"y_pred": "none"}}, "label", data=f"{folder}/all.parquet")
    assert refused.value.faults[0].code == "missing_column"


def test_what_makes_no_request_is_said_before_it(pv: prevail.Client, folder: Path) -> None:
    with pytest.raises(InvalidInput, match="y_pred, scores or probabilities"):
        pv.evaluate("label", data="/x.csv")
    with pytest.raises(InvalidInput, match="both"):
        pv.evaluate("label", "guess", data="/x.csv", file="x.csv")
    twice = {f"churn:{version}": {"y_pred": "guess"} for version in (7, 8)}
    with pytest.raises(InvalidInput, match="one version of each, got two of 'churn'"):
        pv.evaluate_models(twice, "label", data=f"{folder}/all.parquet")
    with pytest.raises(prevail.PrevailError) as refused:
        pv.evaluate("label", "guess", data="/etc/passwd.csv")
    assert refused.value.code == "data_not_allowed"


@pytest.fixture
def command(
    base_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("PREVAIL_URL", base_url)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.mark.slow
def test_it_is_evaluated_on_the_command_line(command: Callable[..., tuple[int, str, str]], folder: Path) -> None:
    asked = ("evaluate", "--data", f"{folder}/*.parquet", "--y-true", "label", "--y-pred", "guess")
    code, printed, _ = command(*asked, "--filter", "part >= 60", "--format", "parquet")
    assert code == 0
    assert "20 samples" in printed
    names = ("--model", "m:2", "--dataset", "d")
    code, printed, _ = command(*asked, *names, "-q")
    assert (code, len(printed.strip())) == (0, 36)
    for wrong in (("evaluate",), ("evaluate", "x.csv", "--data", "/x.csv"), ("evaluate", "x.csv", "--filter", "a=1")):
        assert command(*wrong)[0] == USAGE
