"""Where data lies: addresses with one meaning, patterns, links, and files behind HTTP."""

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from app.api.bodies.files.table import MOST_ROWS
from app.api.bodies.referenced import Asked, NamedRows
from app.domain.data import DataFormat, DataReference
from app.domain.errors import DataNotAllowed, InvalidInput, TooLarge
from app.outbound import data
from app.outbound.data import DataPlaces, HttpFile, allowed_address, read_address, read_prefix
from app.services.processes.worker import tell_progress
from app.settings import Settings
from tests.engine import ENGINE


@pytest.mark.parametrize(
    ("text", "scheme", "path"),
    [
        ("/data/x.csv", "file", "/data/x.csv"),
        ("file:///data/x y.csv", "file", "/data/x y.csv"),
        ("/", "file", "/"),
        ("s3://bucket/a/*.parquet", "s3", "bucket/a/*.parquet"),
        ("S3://bucket", "s3", "bucket"),
        ("gs://bucket/a/", "gs", "bucket/a"),
        ("https://Data.Example:8443/a.csv", "https", "/a.csv"),
    ],
)
def test_an_address_has_one_meaning(text: str, scheme: str, path: str) -> None:
    address = read_address(text)
    assert (address.scheme, address.path) == (scheme, path)


@pytest.mark.parametrize(
    ("text", "prefix", "below"),
    [
        ("s3://bucket/preds/x", "s3://bucket/preds", True),
        ("s3://bucket/preds", "s3://bucket/preds/", True),
        ("s3://bucket/predsx", "s3://bucket/preds", False),
        ("s3://bucket/x", "s3://bucket", True),
        ("s3://Bucket/x", "s3://bucket", False),
        ("http://h/x", "https://h", False),
        ("https://H/x", "https://h", True),
        ("https://h:444/x", "https://h", False),
        ("https://h.evil/x", "https://h", False),
        ("/a/b", "/", True),
        ("/a/**", "/a/b", False),
    ],
)
def test_below_a_prefix_is_by_whole_parts(text: str, prefix: str, below: bool) -> None:
    if below:
        assert allowed_address(text, [read_prefix(prefix)]) == read_address(text)
    else:
        with pytest.raises(DataNotAllowed):
            allowed_address(text, [read_prefix(prefix)])


@pytest.mark.parametrize(
    "prefix", ["data", "s3://", "s3://bucket/*", "ftp://h/x", "s3://u:p@b/x", "/a/../b", "https://h/x?y"]
)
def test_a_prefix_that_means_nothing_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_prefix(prefix)


def test_nothing_is_allowed_unless_the_operator_says_so() -> None:
    with pytest.raises(DataNotAllowed, match="PREVAIL_DATA_PREFIXES"):
        DataPlaces().check("/data/x.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a/1.csv", "a/2.csv", "a/b/3.csv", "a/_aside.csv", "a/.hidden.csv", "a/4.txt", "b/5.csv"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("y_true,y_pred\nx,y\ny,y\n")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a/*.csv", ["1.csv", "2.csv"]),
        ("a/1*", ["1.csv"]),
        ("a/**/*.csv", ["1.csv", "2.csv", "b/3.csv"]),
        ("a/**", ["1.csv", "2.csv", "4.txt", "b/3.csv"]),
        ("a", ["1.csv", "2.csv", "4.txt", "b/3.csv"]),
        ("a/*/3.csv", ["b/3.csv"]),
        ("a/*/**", ["b/3.csv"]),
        ("a/2.csv", ["2.csv"]),
    ],
)
def test_patterns_are_answered_by_lists(folder: Path, pattern: str, names: list[str]) -> None:
    found = DataPlaces((str(folder),)).files(DataReference(f"{folder}/{pattern}")).files
    assert [file.path.removeprefix(f"{folder}/a/") for file in found] == names


def test_the_stars_of_a_pattern_are_bounded(folder: Path) -> None:
    assert DataPlaces((str(folder),)).files(DataReference(f"{folder}/" + "**/" * 6 + "*.csv")).files
    for pattern in ("**/" * 300 + "3.csv", "a/" + "*a" * 190 + "b"):
        with pytest.raises(DataNotAllowed, match="at most 16 stars"):
            DataPlaces((str(folder),)).files(DataReference(f"{folder}/{pattern}"))


def test_links_that_lead_back_are_not_followed(folder: Path) -> None:
    for name in range(6):
        (folder / "a" / f"back{name}").symlink_to(folder)
        (folder / "a" / "b" / f"up{name}").symlink_to("..")
    (folder / "a" / "itself").symlink_to("itself")
    (folder / "a" / "nowhere").symlink_to("gone")
    found = DataPlaces((str(folder),)).files(DataReference(f"{folder}/**")).files
    assert [Path(file.path).relative_to(folder).as_posix() for file in found] == [
        "a/1.csv",
        "a/2.csv",
        "a/4.txt",
        "a/b/3.csv",
        "b/5.csv",
    ]


def test_folders_that_link_to_each_other_are_looked_at_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_MOST_SEEN", 5000)
    for one in range(8):
        (tmp_path / str(one)).mkdir()
        for other in range(8):
            (tmp_path / str(one) / str(other)).symlink_to(tmp_path / str(other))
    with pytest.raises(InvalidInput, match="at most 5000 files and folders"):
        DataPlaces((str(tmp_path),)).files(DataReference(f"{tmp_path}/**"))


def test_only_stars_have_a_meaning(folder: Path) -> None:
    (folder / "a" / "[12].csv").write_text("")
    found = DataPlaces((str(folder),)).files(DataReference(f"{folder}/a/[12]*")).files
    assert [file.path for file in found] == [f"{folder}/a/[12].csv"]


def test_a_folder_that_is_a_link_leads_nowhere_else(folder: Path) -> None:
    (folder / "a" / "out").symlink_to(folder / "b")
    for pattern in ("a/out/5.csv", "a/out", "a/out/*.csv", "a/**/5.csv"):
        with pytest.raises(DataNotAllowed, match="link"):
            DataPlaces((str(folder / "a"),)).files(DataReference(f"{folder}/{pattern}"))


def asked(uri: str, form: DataFormat, kind: str = "predictions", memory: int = 1 << 20) -> Asked:
    columns = {"y_true": "t", "y_pred": "p"} if kind == "predictions" else {"y_true": "t", "score": "s"}
    return Asked(DataReference(uri, form, columns), kind, None, memory)


def test_rows_beyond_memory_are_counted_where_counts_are_all(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    size = 1 << 17
    table = pa.table({"t": pa.array([0, 1] * (size // 2)), "p": pa.array([0, 0, 1, 1] * (size // 4))})
    table = table.append_column("s", pa.array([0.25] * size))
    for place in range(3):
        pq.write_table(table, tmp_path / f"{place}.parquet", row_group_size=size // 4)
    data = DataPlaces((str(tmp_path),))
    with ENGINE.opened(tmp_path_factory.mktemp("rows")) as engine:
        read = NamedRows(data, asked(str(tmp_path), DataFormat.PARQUET)).counted(engine)
    assert read.facts["rows"] == 3 * size
    assert read.tally is not None
    pairs = zip(read.columns["y_true"].tolist(), read.columns["y_pred"].tolist(), strict=True)
    assert dict(zip(pairs, read.tally.times.tolist(), strict=True)) == dict.fromkeys(
        [(0, 0), (1, 0), (0, 1), (1, 1)], 3 * size // 4
    )
    with pytest.raises(TooLarge, match="PREVAIL_DATA_MEMORY_BYTES") as raised:
        NamedRows(data, asked(str(tmp_path), DataFormat.PARQUET, "scores")).whole()
    assert raised.value.pointer == "/input/data"
    assert str(MOST_ROWS) in raised.value.detail


def test_progress_is_the_share_of_the_files_that_was_read(tmp_path: Path) -> None:
    table = pa.table({"t": ["a", "b"] * 500, "p": ["a", "a"] * 500})
    for place in range(4):
        pq.write_table(table, tmp_path / f"{place}.parquet")
    told: list[float] = []
    tell_progress(told.append)
    try:
        NamedRows(DataPlaces((str(tmp_path),)), asked(str(tmp_path), DataFormat.PARQUET)).whole()
    finally:
        tell_progress(None)
    assert told == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_a_setting_that_names_no_prefix_is_refused() -> None:
    with pytest.raises(ValidationError, match="data_prefixes"):
        Settings(data_prefixes=("s3://bucket/*",))


class _Handler(BaseHTTPRequestHandler):
    """A file of ranges; the first part of the path says how the server behaves."""

    body = b""
    asked: list[str] = []  # noqa: RUF012 - of all requests

    def do_GET(self) -> None:
        self.asked.append(self.path)
        how = self.path.split("/")[1]
        if how == "absent":
            self.send_error(404)
        elif how == "redirect":
            self.send_response(302)
            self.send_header("Location", "/good/x.parquet")
            self.end_headers()
        elif how == "whole":
            self._send(200, self.body, {})
        else:
            self._send_range(how)

    def _send_range(self, how: str) -> None:
        start, stop = (int(one) for one in self.headers["Range"].removeprefix("bytes=").split("-"))
        piece = self.body[start : stop + 1]
        version = f'"{len(self.asked)}"' if how == "changing" else '"1"'
        if how == "more":
            piece += b"more"
        self._send(206, piece, {"Content-Range": f"bytes {start}-{stop}/{len(self.body)}", "ETag": version})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("web") / "x.parquet"
    pq.write_table(pa.table({"t": ["a", "b"] * 500, "p": ["a", "a"] * 500}), place)
    _Handler.body = place.read_bytes()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_file_behind_http_is_read_in_ranges(web: str) -> None:
    read = NamedRows(DataPlaces((f"{web}/good",)), asked(f"{web}/good/x.parquet", DataFormat.PARQUET)).whole()
    assert (read.facts["rows"], read.facts["bytes"]) == (1000, len(_Handler.body))
    with HttpFile(f"{web}/good/x.parquet") as file:
        file.seek(-4, 2)
        assert file.read() == b"PAR1"
        file.seek(0)
        assert file.read(4) == b"PAR1"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("redirect", "redirects are not followed"),
        ("whole", "sends ranges"),
        ("more", "more than it was asked for"),
        ("changing", "changed"),
        ("absent", "there is none"),
    ],
)
def test_what_else_a_server_answers_is_a_problem(web: str, how: str, said: str) -> None:
    _Handler.asked.clear()
    with pytest.raises(InvalidInput, match=said):
        NamedRows(DataPlaces((f"{web}/{how}",)), asked(f"{web}/{how}/x.parquet", DataFormat.PARQUET)).whole()
    assert all(path == f"/{how}/x.parquet" for path in _Handler.asked)


def test_http_has_no_patterns_and_lies_below_its_prefix(web: str) -> None:
    with pytest.raises(InvalidInput, match="no lists"):
        DataPlaces((web,)).files(DataReference(f"{web}/good/*.parquet"))
    with pytest.raises(DataNotAllowed):
        DataPlaces((f"{web}/good",)).files(DataReference(f"{web}/redirect/x.parquet"))


@pytest.mark.parametrize(("form", "library"), [(DataFormat.DELTA, "deltalake"), (DataFormat.ICEBERG, "pyiceberg")])
def test_a_table_without_its_library_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: DataFormat, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InvalidInput, match=library) as refused:
        DataPlaces((str(tmp_path),)).files(DataReference(str(tmp_path), form))
    assert refused.value.faults[0].code == "not_installed"
