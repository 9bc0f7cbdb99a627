"""The command line before the real service: what it prints, and what its exit codes mean."""

import gzip
import io
import json
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pandas as pd
import prevail
import pytest
import yaml
from prevail.command import operators
from prevail.command.completion import words_of
from prevail.command.main import known_commands, main, parser

from app.cli import main as main_of_the_service
from tests.client.conftest import BETTER, LABELS, MATRIX

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(base_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs one command; its exit code and what it printed."""
    monkeypatch.setenv("PREVAIL_URL", base_url)

    def run(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = main([*arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture(scope="module")
def gated(pv: prevail.Client) -> prevail.Client:
    """Runs that pass, fail, and cannot be decided, and gates before them."""
    pv.evaluate(matrix=MATRIX, labels=LABELS, model="rf:7", dataset="hartwig", split="test")
    pv.evaluate(
        matrix=BETTER, labels=LABELS, model="rf:8", dataset="hartwig", split="test", tags={"stage": "candidate"}
    )
    pv.evaluate(matrix=[[8, 2], [2, 8]], model="small:1", dataset="few")
    pv.put_gate("promotion", [{"metric": "balanced_accuracy", "min": 0.8}], minimum_samples=10)
    return pv


def test_slices_by_attributes_with_bins_and_a_search(pv: prevail.Client, command: Command) -> None:
    ages = list(range(20, 80))
    source = {
        "kind": "predictions",
        "labels": ["no", "D"],
        "positive": "D",
        "y_true": ["D", "no"] * 30,
        "y_pred": ["no", "no"] * 15 + ["D", "no"] * 15,
        "attributes": {"site": ["A", "B", "B"] * 20, "age": ages},
    }
    pv.evaluate(input=source, model="sliced:1", dataset="sliced")
    found = pv.slices("sliced:1", by=["age"], bins={"age": [50]}, metrics=["recall@D"])
    assert found.worse == [{"age": {"from": None, "to": 50.0}}]
    assert [row[0] for row in found.rows()] == ["age=..50", "age=50.."]
    code, out, err = command("slices", "sliced:1", "--by", "age,site", "--bins", "age=50,", "-m", "recall@D")
    assert (code, err) == (0, "")
    assert "In age below 50, 15 of 15 D are missed, elsewhere 0 of 15" in out
    code, out, _ = command("slices", "sliced:1", "--search", "accuracy", "--against", "overall", "-o", "csv")
    assert code == 0
    assert out.startswith("slice,n_samples,metric")
    assert command("slices", "sliced:1", "--by", "age", "--bins", "age=x")[0] == 3
    asked = ("slices", "sliced:1", "--by", "site")
    code, out, _ = command(*asked, "--min", "min(recall@D, by=site, minimum_samples=20)=0.9")
    assert code == 1
    assert "fail: min(recall@D, by=site, minimum_samples=20) is 0." in out
    assert command(*asked, "--min", "accuracy=0.1", "--max", "range(recall@D, by=site, minimum_samples=20)=1")[0] == 0
    code, out, err = command(*asked, "--min", "min(recall@D, by=town)=0.9", "-o", "csv")
    assert (code, out.startswith("slice,")) == (5, True)
    assert "got 'town'" in err
    assert command(*asked, "--min", "recall@D")[0] == 3


def test_the_verdict_is_the_exit_code(gated: prevail.Client, command: Command) -> None:
    for run, code, verdict in (("rf:8", 0, "PASS"), ("rf:7", 2, "INCONCLUSIVE"), ("small:1", 2, "INCONCLUSIVE")):
        found, out, err = command("gate", "check", "promotion", run)
        assert (found, err) == (code, "")
        assert out.startswith(verdict)
    code, out, _ = command("gate", "put", "strict", "--min", "h_mean=0.95", "--guard", "recall@*=0.05")
    assert (code, out.splitlines()[0]) == (0, "gate strict, version 1")
    assert "baseline" in out
    code, out, _ = command("gate", "check", "strict", "rf:7", "--baseline", "stage=candidate", "--dataset", "hartwig")
    assert (code, out.split()[0]) == (1, "FAIL")


def test_rules_are_tried_on_the_latest_runs(gated: prevail.Client, command: Command) -> None:
    asked = ("gate", "try", "--min", "balanced_accuracy=0.8", "--dataset", "hartwig", "--split", "test")
    code, out, err = command(*asked, "--beside", "promotion")
    assert (code, err) == (0, "")
    assert [line.split()[:3] for line in out.splitlines()] == [
        ["pass", "pass", "rf:8"], ["inconclusive", "inconclusive", "rf:7"],
    ]  # fmt: skip
    assert len(command(*asked, "--latest", "1")[1].splitlines()) == 1
    code, out, _ = command(*asked, "-o", "json")
    assert (code, len(json.loads(out)["items"])) == (0, 2)


def test_what_a_service_keeps_is_not_asked_of_none(command: Command) -> None:
    for arguments in (("gate", "put", "g", "--min", "h_mean=0.5"), ("login",), ("list",)):
        code, _, err = command(*arguments, "--local")
        assert (code, "unrecognized arguments: --local" in err) == (3, True)


def test_a_file_is_tried_as_it_would_be_put(gated: prevail.Client, command: Command, tmp_path: Path) -> None:
    gate: dict[str, Any] = {
        "rules": [{"metric": "balanced_accuracy", "min": 0.8}],
        "minimum_samples": 10_000,
        "applies_to": {"dataset": {"name": "hartwig"}, "model": {"name": "rf", "version": "8"}},
    }
    (tmp_path / "g.json").write_text(json.dumps(gate))
    asked = ("gate", "try", str(tmp_path / "g.json"))
    code, out, err = command(*asked)
    assert (code, err) == (0, "")
    assert [line.split()[:2] for line in out.splitlines()] == [["inconclusive", "rf:8"]]
    assert command(*asked, "--min-samples", "10")[1].split()[0] == "pass"
    assert "rf:7" in command(*asked, "--dataset", "hartwig")[1]
    (tmp_path / "g.json").write_text(json.dumps({**gate, "applies_to": {"tags": {"stage": "candidate"}}}))
    code, _, err = command(*asked)
    assert (code, "of a dataset or a model" in err) == (3, True)


def test_a_webhook_is_put_listed_and_ended(command: Command) -> None:
    address = "https://hooks.example/prevail"
    code, out, err = command("webhook", "put", "chat", address)
    assert (code, err) == (0, "")
    first, secret = out.splitlines()
    assert first == f"webhook chat: gate.checked to {address}"
    assert re.search(r"secret whsec_\S+, shown only now", secret)
    code, out, _ = command("webhook", "put", "chat", address, "--event", "job.finished", "--event", "gate.checked")
    assert (code, out) == (0, f"webhook chat: job.finished, gate.checked to {address}\n")
    code, out, _ = command("webhook", "list", "--json")
    assert code == 0
    assert [(one["name"], one["url"]) for one in json.loads(out)["items"]] == [("chat", address)]
    code, out, _ = command("webhook", "deliveries", "chat", "--json")
    assert (code, json.loads(out)["items"]) == (0, [])
    assert command("webhook", "test", "chatter")[0] == 6
    assert command("webhook", "retry", "chat", "01990000-0000-7000-8000-000000000000")[0] == 6
    assert command("webhook", "put", "chat", address, "--event", "run.created")[0] == 3
    assert command("webhook", "delete", "chat")[0] == 0
    assert command("webhook", "deliveries", "chat")[0] == 6


def test_a_gate_is_put_for_a_dataset(gated: prevail.Client, command: Command) -> None:
    code, _, _ = command("gate", "put", "narrow", "--min", "accuracy=0.1", "--dataset", "hartwig", "--split", "test")
    assert code == 0
    assert gated.gate("narrow")["applies_to"] == {"dataset": {"name": "hartwig", "split": "test"}}
    assert command("gate", "check", "narrow", "rf:8")[0] == 0
    code, _, err = command("gate", "check", "narrow", gated.evaluations(model="small")[0]["id"])
    assert (code, "the gate is for" in err) == (5, True)


def test_inconclusive_can_be_told_to_pass_or_fail(gated: prevail.Client, command: Command) -> None:
    assert command("gate", "check", "promotion", "small:1", "--inconclusive", "pass")[0] == 0
    assert command("gate", "check", "promotion", "small:1", "--inconclusive", "fail")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["gate", "chek", "promotion", "rf:7"], 3, "invalid choice"),
        (["gate", "check", "promotion"], 3, "which run?"),
        (["gate", "check"], 3, "required"),
        (["gate", "check", "promotion", "rf:7", "--baselin"], 3, "expected one argument|unrecognized"),
        (["gate", "check", "promotion", "rf:7", "--inconclusive", "maybe"], 3, "invalid choice"),
        (["gate", "check", "promotin", "rf:7"], 6, "promotin"),
        (["gate", "check", "promotion", "rf:99"], 6, "no evaluation"),
        (["gate", "check", "promotion", ""], 3, "which run?"),
        (["gate", "check", "../x?", "rf:7"], 6, ""),
        (["gate", "check", "promotion", "rf:8", "--url", "http://127.0.0.1:9"], 7, "no answer from http://127.0.0.1:9"),
        (["gate", "check", "promotion", "rf:8", "--url", "nonsense"], 5, "an address such as"),
        (["list", "--url", "http://[::1"], 5, "an address such as"),
        (["list", "--timeout", "0"], 5, "seconds, more than 0, got 0.0"),
        (["api", "GET", "v1/models"], 5, "begins with /"),
        (["evaluate", "-", "--inconclusive", "pass"], 3, "belong to a gate"),
        (["gate", "check", "promotion", "rf:8", "--junit", "/nowhere/x.xml"], 3, "cannot be written"),
        (["gate", "put", "g", "--min", "h_mean"], 3, "METRIC=NUMBER"),
        (["gate", "put", "g", "--min", "no_such_metric=0.5"], 5, "no_such_metric"),
        (["gate", "put", "g"], 3, "either a file or rules"),
        (["gat"], 3, "invalid choice"),
        ([], 3, "required"),
        (["gate", "put", "g", "--min", "h_mean=0.5", "--split", "test"], 5, "a split of a data set, and none is named"),
        (["gate", "try", "--min", "h_mean=0.5", "--split", "test"], 5, "a split of a data set, and none is named"),
        (["gate", "put", "g", "--min", "h_mean=0.5", "--min-samples", "0"], 5, "at least 1"),
        (["list", "--limit", "0"], 5, "limit: expected at least 1, got 0"),
        (["list", "--sort", "-h_mean"], 3, "--sort: expected one argument; .* is written as --sort=-"),
        (["evaluate", "/nowhere.csv"], 5, "there is no file"),
        (["evaluate", "-", "--model", "m"], 3, "both --model and --dataset"),
        (["evaluate", "-", "--gate", "promotion"], 3, "checks what is saved"),
        (["evaluate", "-"], 5, "expected JSON"),
        (["show", "nobody"], 6, "no evaluation of nobody"),
        (["compare", "rf:7"], 3, "two runs or more"),
        (["tag", "rf:7", "stage"], 3, "KEY=VALUE"),
        (["tag", "rf:7", "a=1", "a=2"], 3, "a is there twice"),
        (["what-if", "rf:7", "D=0.1", "D=0.2"], 3, "D is there twice"),
        (["consistency", "accuracy=0.9", "accuracy=0.8", "-p", "9", "-n", "9"], 3, "accuracy is there twice"),
        (["delete", "rf:7"], 3, "--yes"),
        (["metrics", "show", "balanced_acuracy"], 6, "balanced_accuracy"),
    ],
)
def test_nothing_else_ends_like_a_verdict(
    gated: prevail.Client,
    command: Command,
    arguments: list[str],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("prevail.wire.exchange.Retries.wait", lambda *_: 0.0)
    found, out, err = command(*arguments)
    assert (found, out) == (code, "")
    assert re.search(said, err), err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"rules": 5}', "a list of objects"),
        ('{"rules": ["h_mean"]}', "a list of objects"),
        ('{"rules": [{"metric": "h_mean", "min": 0.5}], "minimum_sample": 9}', "no member 'minimum_sample'"),
    ],
)
def test_files_that_define_no_gate_are_refused(command: Command, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "g.json").write_text(text)
    code, _, err = command("gate", "put", "of-file", str(tmp_path / "g.json"))
    assert (code, said in err) == (3, True), err


def test_what_a_gate_shows_defines_it_again(gated: prevail.Client, command: Command, tmp_path: Path) -> None:
    command("gate", "show", "promotion", "--json", "--write", str(tmp_path / "g.json"))
    (tmp_path / "g.json").write_text((tmp_path / "g.json").read_text(), encoding="utf-8-sig")
    code, out, err = command("gate", "put", "again", str(tmp_path / "g.json"))
    assert (code, "at least 10 samples" in out) == (0, True), err


def test_marks_before_json_are_read_over_and_broken_archives_are_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("[[45, 5], [10, 40]]", encoding="utf-8-sig")
    assert command("evaluate", str(tmp_path / "m.json"))[0] == 0
    assert command("evaluate", "-", stdin="\ufeff[[45, 5], [10, 40]]")[0] == 0
    (tmp_path / "x.npz").write_bytes(b"PK\x03\x04nothing")
    code, _, err = command("evaluate", str(tmp_path / "x.npz"))
    assert (code, "x.npz cannot be read" in err) == (5, True)
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(b"y_true,y_pred\na,a\n"))
    code, _, err = command("evaluate", str(tmp_path / "p.csv.gz"))
    assert (code, "not packed, got gzip" in err) == (5, True)


def test_options_that_mean_nothing_to_a_file_are_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("[[45, 5], [10, 40]]")
    (tmp_path / "p.csv").write_text("y_true,y_pred\na,a\nb,b\n")
    code, _, err = command("evaluate", str(tmp_path / "m.json"), "--weight", "w")
    assert (code, "belong to a file of rows" in err) == (3, True)
    code, _, err = command("evaluate", str(tmp_path / "p.csv"), "--predicted-rows")
    assert (code, "belongs to a matrix" in err) == (3, True)


def test_a_request_in_a_file_has_its_names_and_options(command: Command, tmp_path: Path) -> None:
    request = {
        "model": {"name": "asked", "version": "1"},
        "dataset": {"name": "requests", "split": "test"},
        "tags": {"stage": "new"},
        "options": {"metrics": ["f_beta(beta=3)"]},
        "input": {"kind": "confusion_matrix", "matrix": [[45, 5], [10, 40]]},
    }
    (tmp_path / "r.json").write_text(json.dumps(request))
    saved = json.loads(command("evaluate", str(tmp_path / "r.json"), "--json")[1])
    assert (saved["model"]["name"], saved["dataset"]["split"], saved["tags"]) == ("asked", "test", {"stage": "new"})
    assert "f_beta(beta=3)" in saved["requested"]
    code, out, _ = command("evaluate", str(tmp_path / "r.json"), "--no-store", "-o", "csv")
    assert (code, "f_beta(beta=3)" in out) == (0, True)
    other = command("evaluate", str(tmp_path / "r.json"), "--model", "mine:2", "--dataset", "few", "--json")[1]
    assert json.loads(other)["model"] == {"name": "mine", "version": "2"}
    (tmp_path / "r.json").write_text(json.dumps({**request, "created_at": "2026-01-01T00:00:00Z"}))
    code, _, err = command("evaluate", str(tmp_path / "r.json"))
    assert (code, "got 'created_at' too: prevail api POST" in err) == (3, True)
    for wrong in ({"tags": ["new"]}, {"options": "f1"}, {"input": 3}, {"input": None}):
        (tmp_path / "r.json").write_text(json.dumps({**request, **wrong}))
        code, _, err = command("evaluate", str(tmp_path / "r.json"))
        assert (code, "expected a matrix or an object with an input" in err) == (5, True)


def test_whole_answers_are_written_and_what_is_left_out_is_said(
    gated: prevail.Client, command: Command, tmp_path: Path
) -> None:
    target = tmp_path / "out.txt"
    command("gate", "try", "--min", "h_mean=0.5", "--dataset", "hartwig", "--write", str(target))
    assert len(target.read_text().splitlines()) >= 2
    assert command("gate", "try", "--min", "h_mean=0.5", "--dataset", "nowhere")[1] == "no evaluations\n"
    sliced: dict[str, Any] = {
        "y_true": ["a", "b"] * 20,
        "y_pred": ["a", "b"] * 20,
        "attributes": {"site": ["x", "x", "z", "z"] * 10},
    }
    gated.evaluate(**sliced, model="apart:1", dataset="sites")
    assert command("slices", "apart:1", "--by", "site", "--min", "accuracy=0.5", "--write", str(target))[:2] == (0, "")
    assert "site x" in target.read_text()
    assert "1 item and more" in command("list", "--limit", "1")[1]
    for form in ("json", "csv", "markdown"):
        _, out, err = command("list", "--limit", "1", "-o", form)
        assert ("and more" in out, "1 item and more" in err) == (False, True)
    assert command("list", "--json")[2] == ""
    source: dict[str, Any] = {
        "y_true": [0, 1] * 20,
        "scores": [0.2, 0.9] * 20,
        "model": "scored:1",
        "dataset": "numbers",
    }
    gated.evaluate(**source)
    assert command("threshold", "scored:1", "--min", "f_beta(beta=2)=0.5")[0] == 0
    gated.evaluate(matrix=[[8, 2], [2, 8]], model="gone:1", dataset="few")
    assert command("delete", "gone:1", "gone:1", "--yes")[0] == 0


def test_a_bug_does_not_look_like_a_verdict_either(
    gated: prevail.Client, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("prevail.command.gates.judged", broken)
    code, _, err = command("gate", "check", "promotion", "rf:8")
    assert code == 70
    assert "this is a bug" in err


def test_verdicts_are_written_for_pipelines(gated: prevail.Client, command: Command, tmp_path: Path) -> None:
    summary, tests = tmp_path / "summary.md", tmp_path / "out.xml"
    summary.write_text("before\n")
    code, _, _ = command(*("gate", "check", "promotion", "small:1", "--junit", str(tests), "--markdown", str(summary)))
    assert code == 2
    assert summary.read_text().startswith("before\n<!-- prevail gate=promotion dataset=few")
    suites = ET.parse(tests).getroot()
    assert suites.get("tests") == "2"
    assert (suites.get("failures"), suites.get("skipped")) == ("0", "1")
    skipped = suites.find(".//skipped")
    assert skipped is not None
    assert "balanced_accuracy" in str(skipped.get("message"))
    names = [case.get("name") for case in suites.iter("testcase")]
    assert names == ["balanced_accuracy >= 0.8", "at least 10 samples"]
    command(*("gate", "check", "promotion", "small:1", "--junit", str(tests), "--inconclusive", "fail"))
    assert ET.parse(tests).getroot().get("failures") == "1"


def test_wrong_usage_is_said_before_anything_starts(gated: prevail.Client, command: Command, tmp_path: Path) -> None:
    places = ("m.json", "--model", "m:1", "--dataset", "few", "--gate", "promotion")
    code, _, err = command("evaluate", *places, "--local")
    assert (code, "--local saves nothing" in err) == (3, True)
    code, _, err = command("leaderboard", "nope")
    assert (code, "there is no dataset" in err) == (6, True)
    code, out, err = command("leaderboard", "hartwig:9")
    assert (code, out, "no evaluation is of this version" in err) == (6, "", True)
    assert command("leaderboard", "hartwig", "--split", "train")[0] == 6
    assert command("leaderboard", "hartwig", "--where", "h_mean>=0.999")[0] == 0
    (tmp_path / "m.json").write_text("[[45, 5], [10, 40]]")
    code, out, _ = command("evaluate", str(tmp_path / places[0]), *places[1:], "-q")
    assert len(out.strip()) == 36
    assert code in (0, 1, 2)
    code, out, err = command("evaluate", str(tmp_path / places[0]), "-q")
    assert (code, out, "the id of what is saved" in err) == (3, "", True)
    assert command("what-if", "m:1", "1=0.2", "--dataset", "few")[0] == 0
    assert command("what-if", "m:1", "1=0.2", "--dataset", "other")[0] == 6


def test_evaluates_files_matrices_and_what_the_service_takes(command: Command, tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": ["a", "b", "b"], "guess": ["a", "b", "a"]})
    frame.to_csv(tmp_path / "p.csv", index=False)
    code, out, err = command("evaluate", str(tmp_path / "p.csv"))
    assert code == 5
    assert "p.csv has no column y_true. It has: label, guess. Name it: --y-true" in err
    code, out, _ = command("evaluate", str(tmp_path / "p.csv"), "--y-true", "label", "--y-pred", "guess", "--json")
    assert json.loads(out)["input"]["confusion_matrix"] == [[1, 0], [1, 1]]
    pd.concat([frame] * 20).assign(site=["north", "south", "south"] * 20).to_csv(tmp_path / "s.csv", index=False)
    sliced = ("--y-true", "label", "--y-pred", "guess", "--attributes", "site", "--model", "s:1", "--dataset", "few")
    assert command("evaluate", str(tmp_path / "s.csv"), *sliced)[0] == 0
    code, out, _ = command("slices", "s:1", "--dataset", "few", "--by", "site")
    assert (code, re.search(r"site south .* 20 of 40", out) is not None) == (0, True), out
    code, _, err = command("evaluate", str(tmp_path / "p.csv"), "--y-true", "label")
    assert (code, "name y_pred, scores, or probabilities" in err) == (5, True), err
    (tmp_path / "e.csv").write_text("label;guess\na;a\n")
    code, _, err = command("evaluate", str(tmp_path / "e.csv"), "--y-true", "label", "--y-pred", "guess")
    assert (code, "expected commas between the columns of a CSV, got semicolons" in err) == (5, True), err
    code, out, _ = command("evaluate", "-", stdin="[[45, 5], [10, 40]]")
    assert (code, "balanced_accuracy" in out) == (0, True)
    source = {"input": {"kind": "binary_counts", "tp": 4, "fn": 1, "fp": 0, "tn": 5}}
    (tmp_path / "r.json").write_text(json.dumps(source))
    code, out, _ = command("evaluate", str(tmp_path / "r.json"), "-o", "csv", "-m", "f_beta(beta=2)")
    assert out.startswith("scope,class,group,metric,value,low,high,undefined")
    assert "requested,,,f_beta(beta=2)," in out
    target = tmp_path / "out.md"
    code, out, _ = command("evaluate", "-", "-o", "markdown", "--write", str(target), stdin="[[5, 1], [2, 9]]")
    assert (code, out) == (0, "")
    assert "balanced_accuracy" in target.read_text()


def test_evaluates_and_checks_in_one_line(gated: prevail.Client, command: Command, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps({"kind": "confusion_matrix", "matrix": BETTER, "labels": LABELS}))
    names = ("--model", "rf:9", "--dataset", "hartwig", "--split", "test", "--tag", "git=abc")
    code, out, _ = command("evaluate", str(tmp_path / "m.json"), *names, "--gate", "promotion")
    assert (code, out.split()[0]) == (0, "PASS")
    code, out, _ = command("evaluate", str(tmp_path / "m.json"), *names, "-q")
    assert prevail.Client(gated.url).evaluation(out.strip()).tags == {"git": "abc"}


def test_what_else_can_be_asked(gated: prevail.Client, command: Command) -> None:
    expected = {
        ("compare", "rf:8", "rf:7", "-m", "h_mean"): "rf 8 against rf 7",
        ("compare", "rf:8", "rf:7", "-m", "macro_f1", "--explain"): "rf 8 against rf 7",
        ("merge", "rf:8", "rf:7", "--model", "rf:both"): "rf both on hartwig, test",
        ("history", "rf", "--dataset", "hartwig", "-m", "h_mean"): "From version 8 on the model itself got",
        ("history", "rf", "--dataset", "hartwig", "-m", "recall@E"): "No two values to compare.\nthere is no class",
        ("history", "rf", "--dataset", "hartwig", "-o", "csv"): "created_at,version,metric",
        ("leaderboard", "hartwig", "-m", "min(recall@*)"): "hartwig by min(recall@*)",
        ("leaderboard", "hartwig", "-o", "csv"): "rank,model,version",
        ("show", "rf:7"): "rf 7 on hartwig, test",
        ("list", "--dataset", "hartwig"): "id ",
        ("metrics", "youden_j"): "informedness",
        ("metrics", "show", "h_mean"): "key ",
        ("models",): "name",
        ("datasets", "--json"): "{",
        ("gate", "list"): "name",
        ("gate", "show", "promotion"): "gate promotion, version 1",
        ("project", "rf:7", "D=0.5", "-m", "accuracy", "--json"): "{",
        ("consistency", "accuracy=0.9567", "recall=0.8545", "-p", "100", "-n", "200"): "consistent",
        ("consistency", "f_beta(beta=2)=0.5", "accuracy=0.8", "-p", "10", "-n", "20"): "consistent      True",
        ("status",): "version",
        ("api", "get", "/v1/models"): '{"items"',
    }
    for arguments, beginning in expected.items():
        code, out, err = command(*arguments)
        assert (code, err) == (0, ""), arguments
        assert out.lstrip().startswith(beginning), arguments
        assert "\x1b" not in out


def test_pages_are_written_and_opened(
    gated: prevail.Client, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, opened = tmp_path / "page.html", list[str]()
    for arguments in (("show", "rf:7"), ("gate", "check", "promotion", "rf:8"), ("leaderboard", "hartwig")):
        code, out, _ = command(*arguments, "-o", "html", "--write", str(page))
        assert (code, out) == (0, "")
        assert page.read_text().startswith("<!doctype html>")
    assert command("models", "-o", "html")[0] == 3
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert command("show", "rf:7", "--open")[0] == 0
    (address,) = opened
    assert address.startswith("file://")
    assert "rf 7" in Path(address.removeprefix("file://")).read_text()


def test_names_do_nothing_to_a_terminal(pv: prevail.Client, command: Command) -> None:
    pv.evaluate(matrix=[[5, 1], [1, 5]], model="=cmd()|x", dataset="hostile `names`")
    for arguments in (("list", "--dataset", "hostile `names`"), ("models",)):
        assert "\x1b" not in command(*arguments)[1]
    _, out, _ = command("models", "-o", "csv")
    assert "'=cmd()|x" in out


def test_a_model_card_has_metadata_that_can_be_read(gated: prevail.Client, command: Command) -> None:
    code, out, _ = command("card", "rf:8")
    assert code == 0
    _, front, report = out.split("---\n", 2)
    (entry,) = yaml.safe_load(front)["model-index"]
    assert entry["name"] == "rf"
    (result,) = entry["results"]
    assert result["dataset"] == {"name": "hartwig", "type": "hartwig", "split": "test"}
    values = {metric["type"]: metric["value"] for metric in result["metrics"]}
    assert values["h_mean"] == pytest.approx(float(gated.evaluation("rf:8")["h_mean"]))
    assert None not in values.values()
    assert "h_mean" in report


def test_every_command_is_completed_and_has_help(command: Command) -> None:
    words = words_of(parser())
    assert {name.split(":")[0] for name in words} == known_commands()
    assert "--junit" in words["gate:check"]
    for shell in ("bash", "zsh", "fish"):
        code, out, _ = command("completion", shell)
        assert code == 0
        assert "leaderboard" in out
        if shell == "bash" or shutil.which(shell):
            program = shutil.which(shell)
            assert program is not None
            done = subprocess.run([program, "-n"], input=out, text=True, capture_output=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")
    for name in words:
        code, out, _ = command(*name.split(":"), "--help")
        assert (code, "usage: prevail" in out) == (0, True)


def test_completes_in_bash(command: Command) -> None:
    _, script, _ = command("completion", "bash")
    program = shutil.which("bash")
    assert program is not None
    ask = 'COMP_WORDS=(prevail gate check --ju); COMP_CWORD=3; _prevail; echo "${COMPREPLY[@]}"'
    done = subprocess.run([program, "-c", f"{script}\n{ask}"], text=True, capture_output=True, check=True)
    assert done.stdout.strip() == "--junit"


def test_commands_of_the_service_are_found_by_their_entry_points(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main_of_the_service(["--help"])
    commands = re.search(r"\{([a-z,]+)\}", capsys.readouterr().out)
    assert commands is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = project["entry-points"][operators.GROUP]
    # A new command of the service needs a line there.
    assert {*commands[1].split(",")} <= {*declared}
    assert not {*declared} & known_commands()

    def found(*, group: str, name: str | None = None) -> list[EntryPoint]:
        every = [EntryPoint(one, value, group) for one, value in declared.items()]
        return [one for one in every if name in (None, one.name)]

    monkeypatch.setattr(operators, "entry_points", found)
    monkeypatch.delenv("PREVAIL_URL")
    code, out, _ = command("keys", "--help")
    assert (code, "rotate" in out) == (0, True)
    assert command("migrate", "--nonsense")[0] == 3
    monkeypatch.setattr(operators, "entry_points", lambda **_: [])
    for name in declared:
        code, _, err = command(name)
        assert (code, "install prevail-server" in err) == (3, True)
