"""HTTP that is none of the service's: methods, addresses, media types, encodings, forms, queries."""

import gzip
import zlib
from collections.abc import Iterator
from urllib.parse import quote

from tests.hostile.cases_json import FINE
from tests.hostile.harness import COMPUTE, JSON, MB, Case, form, http, parts

UNKNOWN = "01900000-0000-7000-8000-00000000ffff"
# Every address, with the methods that it takes besides HEAD and OPTIONS.
ADDRESSES = {
    "/healthz": "GET",
    "/readyz": "GET",
    "/metrics": "GET",
    "/openapi.json": "GET",
    "/ui": "GET",
    "/ui/gates/g": "GET",
    "/v1/bounds/h-mean": "POST",
    "/v1/comparisons": "GET POST",
    "/v1/comparisons/across-datasets": "POST",
    f"/v1/comparisons/{UNKNOWN}": "GET DELETE",
    f"/v1/comparisons/{UNKNOWN}/plots/differences.json": "GET",
    f"/v1/comparisons/{UNKNOWN}/report": "GET",
    "/v1/consistency-checks": "POST",
    "/v1/datasets": "GET",
    "/v1/datasets/d": "GET DELETE",
    "/v1/evaluations": "GET POST DELETE",
    "/v1/evaluations/batch": "POST",
    "/v1/evaluations/merge": "POST",
    f"/v1/evaluations/{UNKNOWN}": "GET PATCH DELETE",
    f"/v1/evaluations/{UNKNOWN}/curves/roc": "GET",
    f"/v1/evaluations/{UNKNOWN}/plots/roc.json": "GET",
    f"/v1/evaluations/{UNKNOWN}/report": "GET",
    f"/v1/evaluations/{UNKNOWN}/prevalence-estimates": "POST",
    f"/v1/evaluations/{UNKNOWN}/projections": "POST",
    f"/v1/evaluations/{UNKNOWN}/thresholds": "POST",
    "/v1/gate-checks": "GET",
    "/v1/gates": "GET",
    "/v1/gates/g": "GET PUT DELETE",
    "/v1/gates/g/checks": "GET POST",
    f"/v1/gates/g/checks/{UNKNOWN}": "GET",
    f"/v1/gates/g/checks/{UNKNOWN}/plots/verdict.json": "GET",
    "/v1/gates/g/versions": "GET",
    "/v1/jobs": "GET",
    f"/v1/jobs/{UNKNOWN}": "GET DELETE",
    f"/v1/jobs/{UNKNOWN}/result": "GET",
    "/v1/leaderboard": "GET",
    "/v1/metrics": "GET",
    "/v1/metrics/h_mean": "GET",
    "/v1/metrics/compute": "POST",
    "/v1/metrics/recommendations": "POST",
    "/v1/models": "GET",
    "/v1/plots": "GET",
    "/v1/models/m": "GET DELETE",
    "/v1/models/m/history": "GET",
    "/v1/webhooks": "GET",
    "/v1/webhooks/w": "GET PUT DELETE",
    "/v1/webhooks/w/deliveries": "GET",
    f"/v1/webhooks/w/deliveries/{UNKNOWN}/retries": "POST",
}
# To send a delivery again takes no body, and whatever is sent is not looked at.
POSTED = [
    path
    for path, methods in ADDRESSES.items()
    if set(methods.split()) & {"POST", "PUT"} and not path.endswith("/retries")
]


def get(name: str, path: str, status: int, code: str | None) -> Case:
    return Case(name, http("GET", path), status, code)


METHODS = [
    Case(f"{method} {path}", http(method, path, b"{}"), 405, "method_not_allowed")
    for path, taken in ADDRESSES.items()
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "TRACE")
    if method not in taken.split()
]
PATHS = [
    get("path: another one", "/v2/evaluations", 404, "not_found"),
    get("path: a slash too many", "/v1/evaluations/", 404, "not_found"),
    get("path: two slashes", "//v1/evaluations", 404, "not_found"),
    get("path: dots", "/v1/../v1/evaluations", 404, "not_found"),
    get("path: dots, encoded", "/v1/evaluations/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404, "not_found"),
    get("path: a file", "/etc/passwd", 404, "not_found"),
    get("path: NUL in an id", "/v1/evaluations/%00", 422, "invalid_path"),
    get("path: NUL in the name of a gate", "/v1/gates/a%00", 422, "invalid_path"),
    get("path: NUL in a metric", "/v1/metrics/h%00", 404, "not_found"),
    get("path: NUL in the name of a model", "/v1/models/a%00", 422, "invalid_path"),
    get("path: no name of a model", "/v1/models/", 422, "invalid_path"),
    get("path: slashes for a model", "/v1/models/" + "/" * 100, 404, "not_found"),
    get("path: a model of 10 KB", "/v1/models/" + "a" * 10_000, 422, "invalid_path"),
    get("path: SQL for a model", "/v1/models/" + quote("' OR 1=1 --", safe=""), 404, "not_found"),
    get("path: dots for a dataset, encoded", "/v1/datasets/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404, "not_found"),
    get("path: no UTF-8 in the name of a dataset", "/v1/datasets/%ff%fe", 404, "not_found"),
    get("path: an id that is none", "/v1/evaluations/1", 422, "invalid_path"),
    get("path: an id of 10 KB", "/v1/evaluations/" + "a" * 10_000, 422, "invalid_path"),
    get("path: an id in braces", "/v1/evaluations/%7B" + UNKNOWN + "%7D", 404, "not_found"),
    get("path: a gate of 10 KB", "/v1/gates/" + "a" * 10_000, 422, "invalid_path"),
    get("path: a gate of dots", "/v1/gates/..", 422, "invalid_path"),
    get("path: a gate in Chinese", "/v1/gates/" + quote("门"), 422, "invalid_path"),
    get("path: a metric of 10 KB", "/v1/metrics/" + "a" * 10_000, 404, "not_found"),
    get("path: a metric of brackets", "/v1/metrics/" + "(" * 10_000, 404, "not_found"),
    get("path: a curve that is none", f"/v1/evaluations/{UNKNOWN}/curves/x", 422, "invalid_path"),
    get("path: a figure that is none", f"/v1/evaluations/{UNKNOWN}/plots/x.json", 422, "invalid_path"),
    get("path: a figure of dots", f"/v1/evaluations/{UNKNOWN}/plots/...json", 422, "invalid_path"),
    get("path: a figure of 10 KB", f"/v1/evaluations/{UNKNOWN}/plots/" + "a" * 10_000 + ".json", 422, "invalid_path"),
    get("path: a figure in no form", f"/v1/evaluations/{UNKNOWN}/plots/roc.exe", 422, "invalid_path"),
    get("path: no UTF-8", "/v1/gates/%ff%fe", 422, "invalid_path"),
    get("path: half of an escape", "/v1/gates/a%2", 422, "invalid_path"),
    get("path: a template", "/v1/evaluations/{identifier}", 422, "invalid_path"),
    get("path: SQL", "/v1/evaluations/" + quote("' OR 1=1 --"), 422, "invalid_path"),
]  # fmt: skip
QUERIES = [
    get("query: a name that nobody knows", "/v1/evaluations?x=1", 422, "unknown_parameter"),
    get("query: two thousand names", "/v1/evaluations?" + "&".join(f"x{k}=1" for k in range(2_000)), 422, "unknown_parameter"),
    get("query: a value twice", "/v1/evaluations?dataset=x&dataset=y", 422, "repeated_parameter"),
    get("query: a value two thousand times", "/v1/evaluations?" + "&".join(["limit=1"] * 2_000), 422, "repeated_parameter"),
    get("query: 100 KB", "/v1/evaluations?model=" + "a" * 100_000, 431, "headers_too_large"),
    get("query: 50 KB", "/v1/evaluations?model=" + "a" * 50_000, 422, "wrong_length"),
    get("query: ten thousand signs", "/v1/evaluations?" + "&" * 10_000, 200, None),
    get("query: thousands of tags", "/v1/evaluations?" + "&".join(["tag=a:b"] * 5_000), 422, "wrong_length"),
    get("query: a tag without a colon", "/v1/evaluations?tag=a", 422, "invalid_tag"),
    get("query: NUL in a tag", "/v1/evaluations?tag=a:%00", 422, "nul_character"),
    get("query: NUL in a name", "/v1/evaluations?model=%00", 422, "nul_character"),
    get("query: no UTF-8", "/v1/evaluations?model=%ff", 200, None),
    get("query: half of a pair", "/v1/evaluations?model=%ed%a0%80", 200, None),
    get("query: a limit of 0", "/v1/evaluations?limit=0", 422, "out_of_range"),
    get("query: a limit of 10^400", "/v1/evaluations?limit=" + "9" * 400, 422, "out_of_range"),
    get("query: a limit of 5,000 digits", "/v1/evaluations?limit=" + "9" * 5_000, 422, "out_of_range"),
    get("query: a limit that is NaN", "/v1/evaluations?limit=NaN", 422, "wrong_type"),
    get("query: a day that is none", "/v1/evaluations?created_after=2026-13-45", 422, "wrong_value"),
    get("query: the year 10^9", "/v1/evaluations?created_after=" + "9" * 30, 422, "wrong_value"),
    get("query: the first moment of all, east of Greenwich", "/v1/evaluations?created_after=0001-01-01T00:00:00%2B23:59", 200, None),
    get("query: the last moment of all, west of Greenwich", "/v1/evaluations?created_before=9999-12-31T23:59:59-23:59", 200, None),
    get("query: a condition of SQL", "/v1/evaluations?where=" + quote("h_mean>=1 OR 1=1"), 422, "invalid_condition"),
    get("query: a condition on SQL", "/v1/evaluations?where=" + quote("1=1; DROP TABLE evaluations; -- >=1"), 422, "unknown_metric"),
    get("query: a condition of many signs", "/v1/evaluations?where=" + quote("h_mean" + ">" * 200), 422, "invalid_condition"),
    get("query: a condition of 10^400", "/v1/evaluations?where=" + quote("h_mean>1e400"), 422, "invalid_condition"),
    get("query: a condition of 10 KB", "/v1/evaluations?where=" + "a" * 10_000, 422, "wrong_length"),
    get("query: thousands of conditions", "/v1/evaluations?" + "&".join(["where=mcc%3E0"] * 3_000), 422, "wrong_length"),
    get("query: NUL in a condition", "/v1/evaluations?where=mcc%3E0%00", 422, "nul_character"),
    get("query: thousands of metrics", "/v1/evaluations?" + "&".join(["metrics=mcc"] * 5_000), 422, "wrong_length"),
    get("query: a metric of brackets", "/v1/evaluations?metrics=" + "(" * 1_900, 422, "unknown_metric"),
    Case("query: a removal of everything", http("DELETE", "/v1/evaluations"), 422, "no_filter"),
    Case("query: a removal by SQL", http("DELETE", "/v1/evaluations?where=" + quote("h_mean>=1 OR 1=1")), 422, "invalid_condition"),
    get("query: a sort that is none", "/v1/evaluations?sort=" + "(" * 100, 422, "unknown_metric"),
    get("query: a sort by a class", "/v1/evaluations?sort=recall", 422, "unknown_metric"),
    get("query: store that is neither", "/v1/evaluations?store=maybe", 422, "unknown_parameter"),
    get("query: a leaderboard without a dataset", "/v1/leaderboard", 422, "missing_field"),
    get("query: a leaderboard of brackets", "/v1/leaderboard?dataset=d&metric=" + "(" * 1_900, 422, "invalid_expression"),
    get("query: a level of NaN", "/v1/leaderboard?dataset=d&metric=h_mean&level=nan", 422, "out_of_range"),
    get("query: a level of infinity", "/v1/leaderboard?dataset=d&metric=h_mean&level=inf", 422, "out_of_range"),
    get("query: a version of a gate beyond 32 bits", "/v1/gates/g?version=99999999999", 422, "out_of_range"),
    get("query: a search of 50 KB", "/v1/metrics?q=" + "(a*)*" * 10_000, 422, "wrong_length"),
]  # fmt: skip
CURSORS = [
    get(f"cursor: {name} at {path}", f"{path}?cursor={cursor}", 422, code)
    for path in ("/v1/evaluations", "/v1/jobs", "/v1/models", "/v1/gates")
    for name, cursor, code in (
        ("nothing", "", "invalid_cursor"),
        ("a word", "hello", "invalid_cursor"),
        ("no base64", "%F0%9F%98%80", "invalid_cursor"),
        ("an array of arrays", "W1tbXV1d", "invalid_cursor"),
        ("an object", "eyJhIjoxfQ", "invalid_cursor"),
        ("brackets", "W1tb" * 5_000, "invalid_cursor"),
    )
]
MEDIA = [
    Case(f"media type: {kind or 'none'}", http("POST", COMPUTE, FINE, {"Content-Type": kind} if kind else {}), 415, "unsupported_media_type")
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "application/json-seq", "application", ";;;", "*/*", "application/octet-stream", "text/json")
] + [
    Case("media type: with a parameter", http("POST", COMPUTE, FINE, {"Content-Type": 'APPLICATION/JSON; charset="utf-8"'}), 200, None),
    Case("media type: of 10 KB", http("POST", COMPUTE, FINE, {"Content-Type": "a" * 10_000}), 415, "unsupported_media_type"),
    Case("media type: a form where none is taken", http("POST", "/v1/comparisons", *parts(("evaluation", None, b"{}"))), 415, "unsupported_media_type"),
    *(Case(f"no media type: {path}", http("POST" if "PUT" not in ADDRESSES[path] else "PUT", path, b"{}", {}), 415, "unsupported_media_type") for path in POSTED),
]  # fmt: skip


def packed(name: str, body: bytes, encoding: str, status: int, code: str | None) -> Case:
    return Case(f"encoding: {name}", http("POST", COMPUTE, body, {**JSON, "Content-Encoding": encoding}), status, code)


def bomb(size: int, start: bytes = b"", unit: bytes = b" ") -> bytes:
    """So many bytes in gzip, made piece by piece."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    pieces = [packer.compress(start)]
    pieces += [packer.compress(unit * (MB // len(unit))) for _ in range(size // MB)]
    return b"".join([*pieces, packer.flush()])


SMALL = gzip.compress(FINE)
ENCODINGS = [
    packed("gzip", SMALL, "gzip", 200, None),
    packed("gzip over plain JSON", FINE, "gzip", 400, "invalid_gzip"),
    packed("gzip over nothing", b"", "gzip", 400, "invalid_json"),
    packed("gzip that is cut", SMALL[:-9], "gzip", 400, "invalid_gzip"),
    packed("gzip with a wrong sum", SMALL[:-8] + bytes(8), "gzip", 400, "invalid_gzip"),
    packed("gzip with something behind", SMALL + b"x", "gzip", 400, "invalid_gzip"),
    packed("gzip in two members", gzip.compress(FINE[:20]) + gzip.compress(FINE[20:]), "gzip", 200, None),
    packed("zstd", b"\x28\xb5\x2f\xfd", "zstd", 415, "unsupported_encoding"),
    packed("gzip in gzip", gzip.compress(SMALL), "gzip", 400, "invalid_json"),
    packed("two names", gzip.compress(SMALL), "gzip, gzip", 415, "unsupported_encoding"),
    packed("zlib said to be gzip", zlib.compress(FINE), "gzip", 400, "invalid_gzip"),
    packed("deflate", zlib.compress(FINE), "deflate", 415, "unsupported_encoding"),
    packed("br over plain JSON", FINE, "br", 415, "unsupported_encoding"),
    packed("a name of 10 KB", FINE, "g" * 10_000, 415, "unsupported_encoding"),
    packed("plain, by name", FINE, "identity", 200, None),
    packed("gzip without a name", SMALL, "", 400, "invalid_json"),
    packed("5,000 empty members", gzip.compress(b"") * 5_000 + SMALL, "gzip", 200, None),
    packed("200,000 empty members", gzip.compress(b"") * 200_000 + SMALL, "gzip", 400, "invalid_gzip"),
    Case("encoding: 300 MB of blanks in gzip", lambda: http("POST", COMPUTE, bomb(300 * MB), {**JSON, "Content-Encoding": "gzip"}), 413, "body_too_large"),
    Case("encoding: 100 MB of numbers in gzip", lambda: http("POST", COMPUTE, bomb(100 * MB, b'{"foo": [1', b",1"), {**JSON, "Content-Encoding": "gzip"}), 413, "body_too_large"),
    Case("encoding: 2 MB of blanks in gzip for a gate", lambda: http("PUT", "/v1/gates/g", bomb(2 * MB), {**JSON, "Content-Encoding": "gzip"}), 413, "body_too_large"),
]  # fmt: skip


EVALUATION = b'{"input": {"kind": "predictions"}}'
CSV = b"y_true,y_pred\na,b\nb,b\n"
BOUNDARY = {"Content-Type": "multipart/form-data; boundary=x"}


def fields(name: str, status: int, code: str | None, *sent: tuple[str, str | None, bytes]) -> Case:
    return Case(f"form: {name}", http("POST", COMPUTE, *parts(*sent)), status, code)


def raw(name: str, body: bytes, status: int, code: str | None, kind: str = "multipart/form-data; boundary=x") -> Case:
    return Case(f"form: {name}", http("POST", COMPUTE, body, {"Content-Type": kind}), status, code)


def part(headers: bytes, content: bytes) -> bytes:
    return b"--x\r\n" + headers + b"\r\n\r\n" + content + b"\r\n"


DATA = b'Content-Disposition: form-data; name="data"; filename="f"'
FORMS = [
    fields("fine", 200, None, ("evaluation", None, EVALUATION), ("data", "f", CSV)),
    fields("the JSON as a file", 200, None, ("evaluation", "e.json", EVALUATION), ("data", "f", CSV)),
    fields("the data first", 200, None, ("data", "f", CSV), ("evaluation", None, EVALUATION)),
    fields("no data", 422, "missing_field", ("evaluation", None, EVALUATION)),
    fields("no JSON", 422, "missing_field", ("data", "f", CSV)),
    fields("data that is no file", 422, "missing_field", ("evaluation", None, EVALUATION), ("data", None, CSV)),
    fields("the data twice", 422, "repeated_part", ("evaluation", None, EVALUATION), ("data", "f", CSV), ("data", "g", CSV)),
    fields("the JSON twice", 422, "repeated_part", ("evaluation", None, EVALUATION), ("evaluation", None, EVALUATION), ("data", "f", CSV)),
    fields("one part more", 200, None, ("evaluation", None, EVALUATION), ("data", "f", CSV), ("more", None, b"1")),
    fields("three files", 400, "bad_request", ("evaluation", None, EVALUATION), ("data", "f", CSV), ("more", "g", CSV), ("again", "h", CSV)),
    fields("10,000 parts", 400, "bad_request", *[("evaluation", None, EVALUATION)] * 10_000),
    fields("10,000 files", 400, "bad_request", *[("data", "f", CSV)] * 10_000),
    fields("JSON of 2 MB in a field", 400, "bad_request", ("evaluation", None, EVALUATION + b" " * 2_000_000), ("data", "f", CSV)),
    fields("JSON of 2 MB in a file", 422, "wrong_length", ("evaluation", "e", EVALUATION + b" " * 2_000_000), ("data", "f", CSV)),
    fields("JSON that is none", 400, "invalid_json", ("evaluation", None, EVALUATION[:-1]), ("data", "f", CSV)),
    fields("JSON that is no UTF-8", 400, "invalid_json", ("evaluation", "e.json", b'{"\xff": 1}'), ("data", "f", CSV)),
    fields("JSON with a member twice", 422, "repeated_member", ("evaluation", None, b'{"input": {"kind": "scores", "kind": "predictions"}}'), ("data", "f", CSV)),
    fields("JSON with 50,000 members", 422, "too_many_members", ("evaluation", None, b'{"input": {"kind": "predictions"}, ' + b", ".join(b'"k%d":1' % k for k in range(50_000)) + b"}"), ("data", "f", CSV)),
    fields("JSON nested 10,000 deep", 400, "invalid_json", ("evaluation", None, b"[" * 10_000 + b"]" * 10_000), ("data", "f", CSV)),
    fields("JSON that is an array", 422, "wrong_type", ("evaluation", None, b"[]"), ("data", "f", CSV)),
    fields("a kind that is a number", 422, "wrong_value", ("evaluation", None, b'{"input": {"kind": 1}}'), ("data", "f", CSV)),
    fields("a matrix from a file", 422, "no_columns", ("evaluation", None, b'{"input": {"kind": "confusion_matrix"}}'), ("data", "f", CSV)),
    fields("a column here and there", 422, "given_twice", ("evaluation", None, b'{"input": {"kind": "predictions", "y_true": []}}'), ("data", "f", CSV)),
    fields("a name of a file that climbs", 200, None, ("evaluation", None, EVALUATION), ("data", "../../etc/passwd", CSV)),
    raw("nothing", b"", 422, "missing_field"),
    raw("no boundary", b"--x\r\n", 400, "bad_request", "multipart/form-data"),
    raw("a boundary of nothing", b"--\r\n", 422, "missing_field", "multipart/form-data; boundary="),
    raw("a boundary of 10 KB", b"--" + b"x" * 10_000 + b"--\r\n", 400, "bad_request", "multipart/form-data; boundary=" + "x" * 10_000),
    raw("another boundary", b"--y\r\n" + DATA + b"\r\n\r\n1\r\n--y--\r\n", 400, "bad_request"),
    raw("no end", part(DATA, CSV), 422, "missing_field"),
    raw("half of a header", b"--x\r\nContent-Dispo", 422, "missing_field"),
    raw("a part without headers", b"--x\r\n\r\nhello\r\n--x--\r\n", 400, "bad_request"),
    raw("a part without a name", part(b"Content-Disposition: form-data", b"a") + b"--x--\r\n", 400, "bad_request"),
    raw("a header of 1 MB", part(DATA + b"\r\nX: " + b"a" * MB, CSV) + b"--x--\r\n", 400, "bad_request"),
    raw("a hundred thousand headers", part(DATA + b"\r\nX: a" * 100_000, CSV) + b"--x--\r\n", 400, "bad_request"),
    raw("a form in a form", part(b'Content-Disposition: form-data; name="data"\r\nContent-Type: multipart/mixed; boundary=y', b"--y\r\n\r\n1\r\n--y--") + b"--x--\r\n", 422, "missing_field"),
    raw("a name of 1 MB", part(b'Content-Disposition: form-data; name="' + b"a" * MB + b'"', b"1") + b"--x--\r\n", 400, "bad_request"),
    raw("an unknown charset", part(b'Content-Disposition: form-data; name="_charset_"', b"klingon") + part(DATA, CSV) + b"--x--\r\n", 422, "missing_field"),
    raw("an unknown charset of the form", part(DATA, CSV) + b"--x--\r\n", 422, "missing_field", "multipart/form-data; boundary=x; charset=klingon"),
    raw("JSON said to be a form", FINE, 400, "bad_request"),
    Case("form: 300 MB announced", http("POST", COMPUTE, b"", {**BOUNDARY, "Content-Length": str(300 * MB)}, length=False), 413, "body_too_large"),
    Case("form: a large file for a gate", form(CSV * 10, {"kind": "predictions"}, "/v1/gates/g/checks"), 415, "unsupported_media_type"),
]  # fmt: skip


def elsewhere() -> Iterator[Case]:
    """What is wrong in a body is wrong at every address that takes one."""
    bodies = (
        ("no JSON", b"{", 400, "invalid_json"),
        ("an array", b"[]", 422, "wrong_type"),
        ("a member twice", b'{"a": 1, "a": 2}', 422, "repeated_member"),
        ("100,000 members", b"{" + b",".join(b'"k%d":1' % k for k in range(80_000)) + b"}", 422, "too_many_members"),
        ("arrays 50,000 deep", b"[" * 50_000, 400, "invalid_json"),
        ("2 MB", b" " * (2 * MB), 413, "body_too_large"),
    )
    for path in POSTED:
        # Where samples are sent, bodies may be large.
        small = path not in ("/v1/evaluations", "/v1/evaluations/batch", COMPUTE) and "estimates" not in path
        method = "PUT" if "PUT" in ADDRESSES[path] else "POST"
        for name, body, status, code in bodies:
            if small or len(body) < MB:
                yield Case(f"{name} at {path}", http(method, path, body), status, code)


CASES = [*METHODS, *PATHS, *QUERIES, *CURSORS, *MEDIA, *ENCODINGS, *FORMS, *elsewhere()]
