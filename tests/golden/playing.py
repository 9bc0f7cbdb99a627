"""Runs a group of requests on a server of its own and makes the answers comparable."""

import gzip
import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import NAMESPACE_URL, UUID, uuid5

import httpx
from pydantic import SecretStr

from app.settings import Authentication, Settings
from tests.golden.calls import Call, Json
from tests.serving import Served

ANSWERS = Path(__file__).with_name("answers")
MOST_BYTES = 1024 * 1024
_HEADERS = ("allow", "content-type", "location", "preference-applied", "retry-after")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SECRET = re.compile(r"(?<=^pv_[0-9a-f]{32})_[A-Za-z0-9_-]{43}$|(?<=^whsec)_[A-Za-z0-9+/]{43}=$")
_STYLES = re.compile(r"(?<=<style>).*?(?=</style>)", re.DOTALL)
_PICTURE = re.compile(r'<svg[^>]* class="fig".*?</svg>', re.DOTALL)
_REQUEST = re.compile(r"urn:request:[A-Za-z0-9._:/+=@-]+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
# Ids are of the year 2100: none of them looks like one that was held up on its way into the database.
_START = 4_102_444_800_000


class Ids:
    """Makes ids in the place of the service: each request makes the same in every run, later ones greater ones."""

    def __init__(self) -> None:
        self._place = self._count = 0
        self._name = ""
        self._made: set[str] = set()
        self._seen: dict[str, str] = {}
        self._new = 0

    def begin(self, place: int, name: str) -> None:
        """From now on ids are made by this request."""
        self._place, self._name, self._count, self._new = place, name, 0, 0

    def __call__(self) -> UUID:
        """Make an id of version 7."""
        self._count += 1
        noise = int.from_bytes(hashlib.blake2b(f"{self._name} {self._count}".encode(), digest_size=8).digest(), "big")
        time = _START + 1000 * self._place + self._count
        made = UUID(int=time << 80 | 0x7 << 76 | 0b10 << 62 | noise >> 2)
        self._made.add(str(made))
        return made

    def placeholder(self, text: str) -> str:
        """What stands for an id that was made here; others came with the request and stay."""
        if text not in self._made:
            return text
        if text not in self._seen:
            self._new += 1
            self._seen[text] = f"id-{self._new} of {self._name}"
        return self._seen[text]

    def check(self, text: str) -> None:
        """Fail for the id of something kept that was not made here: seeds that come from ids would not be the same."""
        assert text in self._made, f"the service made the id {text} by other means than a function new_id"


@contextmanager
def _making_ids(ids: Ids) -> Iterator[None]:
    """Put ``ids`` in the place of the function `new_id`, wherever in the application it is known by that name."""
    known = [
        module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "app" and callable(getattr(module, "new_id", None))
    ]
    assert known, "no module of the application has a function new_id: tell tests/golden/playing.py what makes ids now"
    with ExitStack() as stack:
        for module in known:
            stack.enter_context(mock.patch.object(module, "new_id", ids))
        yield


def served(database_url: str, **usual: Any) -> Served:
    """A service on an empty database, with further settings that are not as usual."""
    settings = Settings(
        database_url=SecretStr(database_url), max_body_bytes=MOST_BYTES, authentication=Authentication.off, **usual
    )
    return Served(settings)


def play(url: str, calls: Sequence[Call], project: str = "default") -> dict[str, Json]:
    """Send the requests in order to a service where the project has nothing yet; comparable answers by name of the
    request.
    """
    ids, raw, answers = Ids(), dict[str, Any](), dict[str, Json]()
    usual = {"X-Prevail-Project": project}
    with _making_ids(ids), httpx.Client(base_url=url, timeout=60, headers=usual) as client:
        for place, call in enumerate(calls):
            ids.begin(place, call.name)
            reply = client.request(**call.arguments(raw))
            while call.until_ended and reply.json()["status"] in ("queued", "running"):
                time.sleep(0.01)
                reply = client.request(**call.arguments(raw))
            assert reply.status_code != httpx.codes.INTERNAL_SERVER_ERROR, f"{call.name}: {reply.text}"
            assert call.name not in raw, f"two requests of this group are named {call.name}"
            raw[call.name] = _body(reply)
            if reply.status_code == httpx.codes.CREATED and "id" in raw[call.name]:
                ids.check(raw[call.name]["id"])
            answers[call.name] = {
                "status": reply.status_code,
                "headers": {name: _stable(reply.headers[name], ids) for name in _HEADERS if name in reply.headers},
                "body": _stable(raw[call.name], ids),
            }
    return answers


def _body(reply: httpx.Response) -> Any:
    """JSON that is strict, or a text, or None."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} on the wire")

    if "version=" in reply.headers.get("content-type", ""):
        # Metrics are others each time.
        return None
    if "json" in reply.headers.get("content-type", ""):
        return json.loads(reply.content, parse_constant=refuse)
    # Styles are long and the same for all; a picture is that of a specification, and its digits those of what drew it.
    return _PICTURE.sub("picture", _STYLES.sub("styles", reply.text)) or None


def _stable(value: Any, ids: Ids) -> Any:
    """The same without what is another each time; members are looked at in an order that is not that of the answer."""
    if isinstance(value, dict):
        stable = {name: _stable(value[name], ids) for name in sorted(value)}
        for name, placeholder in (("next_cursor", "cursor"), ("request_id", "request")):
            if isinstance(stable.get(name), str):
                stable[name] = placeholder
        if isinstance(stable.get("compute_seconds"), dict):
            stable["compute_seconds"]["used"] = 0  # a number, as it is documented
        return stable
    if isinstance(value, list):
        return [_stable(item, ids) for item in value]
    if not isinstance(value, str):
        return value
    text = _UUID.sub(lambda match: ids.placeholder(match[0]), value)
    return _SECRET.sub("_secret", _TIME.sub("time", _REQUEST.sub("urn:request:id", text)))


def read_answers(group: str) -> dict[str, Json]:
    """The recorded answers of a group; none when it was never recorded."""
    path = _path(group)
    found: dict[str, Json] = json.loads(gzip.decompress(path.read_bytes())) if path.exists() else {}
    return found


def write_answers(group: str, answers: Mapping[str, Json]) -> None:
    """Record the answers of a group: the same bytes for the same answers."""
    text = json.dumps(answers, ensure_ascii=False, indent=0, sort_keys=True)
    _path(group).write_bytes(gzip.compress(text.encode(), mtime=0))


def _path(group: str) -> Path:
    return ANSWERS / f"{group}.json.gz"


_SHOWN_TIME = "2026-11-24T09:00:00.000Z"


def filled(body: Any) -> Any:
    """The answer with ids and times in the place of what is recorded of them."""
    if isinstance(body, dict):
        return {filled(name): filled(value) for name, value in body.items()}
    if isinstance(body, list):
        return [filled(one) for one in body]
    if not isinstance(body, str):
        return body
    if body == "time":
        return _SHOWN_TIME
    return re.sub(r"id-\d+ of [\w-]+", lambda match: str(uuid5(NAMESPACE_URL, match[0])), body)
