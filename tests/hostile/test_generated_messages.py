"""Raw HTTP/1.1 made by a grammar: no message is a fault of the service, none hangs, and where messages end is where h11
says that they end.
"""

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import h11
import pytest
from pydantic import SecretStr

from app.protocol import GuardedProtocol
from app.settings import Authentication, Settings
from tests.serving import Served

pytestmark = pytest.mark.slow

MESSAGES: Final = 20_000
AT_ONCE: Final = 64
SECONDS: Final = 0.3
# Far beyond any deadline of the service.
HANGS_AFTER: Final = 30.0
LAST: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

JSON: Final = b'{"input":{"kind":"binary_counts","tp":8,"fn":2,"fp":1,"tn":9}}'
METHODS: Final = [
    *[b"GET"] * 6,
    *[b"POST"] * 8,
    b"PUT",
    b"HEAD",
    b"DELETE",
    b"OPTIONS",
    b"PATCH",
    b"TRACE",
    b"get",
    b"G@T",
]
TARGETS: Final = [
    *(
        b"/healthz",
        b"/v1/models",
        b"/v1/models?limit=1",
        b"/v1/metrics/compute",
        b"/v1/evaluations",
        b"/ui",
        b"/nowhere",
    ),
    *(
        b"/v1%2fmodels",
        b"/v1/models/a%2Fb",
        b"/v1/%6dodels",
        b"/v1/../v1/models",
        b"//v1/models",
        b"/v1/models/%",
        b"/%00",
    ),
    *(
        b"/ui/https:x?y=",
        b"*",
        b"http://localhost/healthz",
        b"healthz",
        b"/a?b#c",
        b"/a;b=c",
        b"/\xff",
        b"/a b",
        b"/" + b"a" * 3000,
    ),
]
VERSIONS: Final = [
    *[b"HTTP/1.1"] * 20,
    b"HTTP/1.0",
    b"HTTP/1.2",
    b"HTTP/2.0",
    b"HTTP/0.9",
    b"http/1.1",
    b"HTTP/1.1 ",
    b"",
]
LENGTHS: Final = [
    *(
        b"%d",
        b"0%d",
        b"+%d",
        b"-%d",
        b"%d, %d",
        b"%d,%d",
        b" %d",
        b"%d ",
        b"\t%d",
        b"0x%x",
        b"%d.0",
        b"",
        b"1e1",
        b"%d;a",
    ),
    *(b"9" * 5001, b"0" * 5000 + b"%d", b"18446744073709551616", b"4294967296", b"\xb2"),
]
CODINGS: Final = [
    *[b"chunked"] * 20,
    *(
        b"Chunked",
        b"chunked, chunked",
        b"gzip, chunked",
        b"chunked, gzip",
        b"identity",
        b"xchunked",
        b"chunked,",
        b",chunked",
    ),
    *(b"\x0bchunked", b"chunked\t", b"chunked;q=1", b'"chunked"', b"chunked identity", b""),
]
OTHERS: Final = [
    *(
        b"Accept: */*",
        b"X: y",
        b"X:y",
        b"x-empty:",
        b"X-Tab:\ty\t",
        b"Connection: keep-alive",
        b"Connection: close",
        b"Expect: 100-continue",
    ),
    *(
        b"Upgrade: websocket\r\nConnection: Upgrade",
        b"Upgrade: h2c\r\nConnection: upgrade",
        b"X-Forwarded-For: [",
        b"X-Request-ID: a",
    ),
    *(
        b"X : y",
        b" X: y",
        b": y",
        b"X",
        b"X: a\r\n b",
        b"X: a\x00b",
        b"X: \xff",
        b"X: a\rb",
        b"X: a\nY: b",
        b"\x7f: y",
        b"X(): y",
    ),
    *(
        b"Content-Encoding: gzip",
        b"Sec-Fetch-Site: cross-site",
        b"Origin: null",
        b"Cookie: prevail_key=x",
        b"Authorization: Bearer x",
    ),
    *(b"TE: trailers", b"Trailer: X", b"X: " + b"a" * 5000),
]
HOSTS: Final = [
    *[b"Host: localhost"] * 25,
    b"",
    b"Host: localhost\r\nHost: localhost",
    b"Host: evil.example",
    b"Host: a b",
    b"Host:",
]
TRAILERS: Final = [
    b"X: y",
    b"Authorization: Bearer x",
    b"Host: evil.example",
    b"Content-Length: 3",
    b"Transfer-Encoding: chunked",
    b"X",
    b" y",
    b"X-Prevail-Project: other",
]
EXTENSIONS: Final = [*[b""] * 12, b";a", b";a=b", b';a="b;c"', b" ;a", b";", b";\x00", b" ", b";a=\xff"]


def chunks(choice: random.Random, body: bytes) -> bytes:
    """A body in chunks, now and then with something wrong about one."""
    written = b""
    while body:
        size = min(choice.randint(1, 40), len(body))
        piece, body = body[:size], body[size:]
        number = (
            choice.choice(
                [b"%x"] * 12 + [b"%X", b"00%x", b"0x%x", b"-%x", b"+%x", b" %x", b"g%x", b"fffffffffffffffff%x"]
            )
            % size
        )
        end = choice.choice([b"\r\n"] * 40 + [b"\n", b"\r", b"", b"\r\n\r\n"])
        written += number + choice.choice(EXTENSIONS) + b"\r\n" + piece + end
    trailers = b"".join(choice.choice(TRAILERS) + b"\r\n" for _ in range(choice.choice([0, 0, 0, 1, 2])))
    return written + choice.choice([b"0"] * 12 + [b"000", b"0;a", b"0 ", b""]) + b"\r\n" + trailers + b"\r\n"


def message(choice: random.Random) -> bytes:
    """One message, most of them good."""
    if choice.random() < 0.5:
        head = choice.choice([b"GET /healthz", b"GET /v1/models", b"POST /v1/metrics/compute", b"POST /nowhere"])
        size, body = (
            (b"Content-Length: %d" % len(JSON), JSON) if choice.random() < 0.5 else (b"Transfer-Encoding: chunked", b"")
        )
        body = body or b"%x\r\n%b\r\n0\r\n\r\n" % (len(JSON), JSON)
        return b"%b HTTP/1.1\r\nHost: localhost\r\n%b\r\nContent-Type: application/json\r\n\r\n%b" % (head, size, body)
    body = choice.choice(
        [b"", JSON, JSON, b"{}", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", bytes(range(256))]
    )
    headers = [choice.choice(HOSTS), *choice.choices(OTHERS, k=choice.choice([0, 0, 1, 1, 2]))]
    if choice.random() < 0.7:
        headers.append(b"Content-Type: application/json")
    framing, written = (
        choice.choice(["none", "length", "length", "odd length", "chunks", "chunks", "both", "two"]),
        body,
    )
    length = b"Content-Length: %d" % len(body)
    coding = b"Transfer-Encoding: " + choice.choice(CODINGS)
    if framing == "none":
        written = b"" if choice.random() < 0.9 else body
    elif framing == "length":
        headers.append(length)
    elif framing == "odd length":
        headers.append(b"Content-Length: " + re.sub(b"%[dx]", lambda _: b"%d" % len(body), choice.choice(LENGTHS)))
    elif framing == "chunks":
        headers.append(coding)
        written = chunks(choice, body)
    elif framing == "both":
        headers += choice.sample([length, coding], 2)
        written = chunks(choice, body)
    else:
        headers += (
            [length, choice.choice([length, b"Content-Length: 1"])] if choice.random() < 0.5 else [coding, coding]
        )
        written = body if headers[-1].startswith(b"Content") else chunks(choice, body)
    choice.shuffle(headers)
    line = b" ".join([choice.choice(METHODS), choice.choice(TARGETS), choice.choice(VERSIONS)])
    end = choice.choice([b"\r\n"] * 60 + [b"\n", b"\r", b"\r\r\n"])
    sent = end.join([line, *filter(None, headers), b"", b""]) + written
    if choice.random() < 0.04:
        place = choice.randrange(len(sent))
        sent = (
            sent[:place]
            + choice.choice([b"", b"\x00", b"\r", b"\n", b" ", b"\xff", b":"])
            + sent[place + choice.randint(0, 1) :]
        )
    return sent


@dataclass
class Seen:
    """A message as a parser has it: complete when its end was seen."""

    method: bytes
    target: bytes
    body: bytes = b""
    complete: bool = False


@dataclass
class Witness:
    """What h11 makes of the bytes of a connection.

    Attributes:
        end: Why it read no further: `close`, `wrong` or `more`, for a message that is not all there.
    """

    seen: list[Seen] = field(default_factory=list)
    end: str = "more"


def witnessed(data: bytes) -> Witness:
    connection, witness = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20), Witness()
    connection.receive_data(data)
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError:
            witness.end = "wrong"
            return witness
        if event is h11.NEED_DATA:
            return witness
        if isinstance(event, h11.Request):
            witness.seen.append(Seen(event.method, event.target))
        elif isinstance(event, h11.Data):
            witness.seen[-1].body += event.data
        elif isinstance(event, h11.EndOfMessage):
            witness.seen[-1].complete = True
            connection.send(h11.Response(status_code=400, headers=[("Content-Length", "0")]))
            connection.send(h11.EndOfMessage())
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                witness.end = "close"
                return witness
            connection.start_next_cycle()


class Recording(GuardedProtocol):
    """The protocol of the service, which writes down what it sees of each connection."""

    seen: Final[dict[int, list[Seen]]] = defaultdict(list)

    def _log(self) -> list[Seen]:
        assert self.client is not None
        return self.seen[self.client[1]]

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._log().append(Seen(self.parser.get_method(), self.url))

    def on_body(self, body: bytes) -> None:
        self._log()[-1].body += body
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._log()[-1].complete = True
        super().on_message_complete()


@pytest.fixture(scope="module")
def port(database_url: str) -> Iterator[int]:
    settings = Settings(
        database_url=SecretStr(database_url),
        authentication=Authentication.off,
        header_seconds=SECONDS,
        body_seconds=SECONDS,
        job_concurrency=0,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.serving.GuardedProtocol", Recording)
        with Served(settings) as url:
            yield int(url.rpartition(":")[2])


async def talk(port: int, pieces: list[bytes]) -> tuple[int, bytes]:
    """Send the pieces; returns the port of this end, and all that was answered until the service closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    own: int = writer.get_extra_info("sockname")[1]
    received = b""
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        received = await asyncio.wait_for(reader.read(-1), HANGS_AFTER)
    except ConnectionError:
        # It was refused while it was sent.
        pass
    finally:
        writer.close()
    return own, received


def wrong_with(data: bytes, service: list[Seen], answers: list[int]) -> str | None:
    """What the service made of a connection otherwise than h11 did."""
    witness = witnessed(data)
    if any(status >= 500 for status in answers):
        return f"answers {answers}"
    for place, (ours, theirs) in enumerate(zip(service, witness.seen, strict=False)):
        if not ours.complete:
            break
        same = (ours.method, ours.target, ours.body) == (theirs.method, theirs.target, theirs.body)
        if not (theirs.complete and same):
            return f"message {place}: {ours} for {theirs}, h11 ended with {witness.end}"
    complete = sum(one.complete for one in service)
    if witness.end == "more" and complete > sum(one.complete for one in witness.seen):
        return f"{complete} messages, of which h11 has not seen the end: {witness}"
    if witness.end == "close" and len([status for status in answers if status >= 200]) > len(witness.seen):
        return f"{answers} answered to {len(witness.seen)} messages"
    return None


def test_messages_by_a_grammar(port: int) -> None:
    choice = random.Random(23)  # noqa: S311 - the same messages in every run
    connections: list[list[bytes]] = []
    while sum(map(len, connections)) < MESSAGES:
        connections.append([message(choice) for _ in range(choice.randint(1, 3))])
    found: list[str] = []
    statuses: dict[int, int] = defaultdict(int)

    async def try_one(messages: list[bytes], places: asyncio.Semaphore, split: float) -> None:
        data = b"".join(messages) + LAST
        cut = int(len(data) * split)
        async with places:
            try:
                own, received = await talk(port, [data[:cut], data[cut:]])
            except TimeoutError:
                found.append(f"hangs: {data!r}")
                return
        answers = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]
        for status in answers:
            statuses[status] += 1
        if said := wrong_with(data, Recording.seen.pop(own, []), answers):
            found.append(f"{said}\n  {data[:600]!r}")

    async def try_all() -> None:
        places = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(try_one(messages, places, choice.random()) for messages in connections))

    asyncio.run(try_all())
    assert not found, f"{len(found)} of {len(connections)} connections:\n" + "\n".join(found[:20])
    # It was no shower of nonsense: most of what was sent was taken.
    assert statuses[200] > MESSAGES / 10, dict(statuses)
    assert {200, 400, 403, 404, 405, 422}.issubset(statuses), dict(statuses)
