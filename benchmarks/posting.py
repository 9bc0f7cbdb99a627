"""Clients that post small evaluations without a pause and remember what was acknowledged, and the count afterwards.

Clients with several ports have keys: they send each evaluation again, at whichever replica, until it is acknowledged.
Some of theirs are put aside as jobs, whose ends are looked at afterwards.
"""

import asyncio
import http.client
import json
import random
import threading
import time
from bisect import bisect
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import asyncpg

_TIMEOUT = 10.0
_PAUSE = 0.02
CLIENTS = 4
# Every so many posts one with samples, which are rows of other tables in the same transaction.
_SAMPLES_EVERY = 5
# Clients with keys: for how long they send again what is not acknowledged at the end, and how many send again what is.
_PATIENCE, _SENT_TWICE = 60.0, 0.1
# Every so many of theirs are answered later, and for how long their ends are waited for.
_LATER_EVERY, _JOB_PATIENCE = 7, 180.0


@dataclass(frozen=True)
class Kept:
    """An answer 201: nothing may happen to it any more."""

    tag: str
    digest: bytes
    with_samples: bool


@dataclass
class Posting:
    """Several clients at work until the end of the block.

    Attributes:
        port: Of the service.
        others: Those of its replicas. Where there are any, every request is sent with a key, again and again until it
            is acknowledged.
        never: Posts with a key that were not acknowledged in the end.
        replayed: Answers that said that they were repeated.
        different: Repeated answers that were not the first one.
        jobs: What was put aside: the tag of each by the address of its job.
        unfinished: Jobs that had not succeeded in the end.
    """

    port: int
    others: Sequence[int] = ()
    never: int = 0
    replayed: int = 0
    different: int = 0
    jobs: dict[str, str] = field(default_factory=dict)
    unfinished: int = 0
    acknowledged: dict[str, Kept] = field(default_factory=dict)
    # When each of them was acknowledged, in this order, and when it began.
    moments: list[tuple[float, float]] = field(default_factory=list)
    twice: int = 0
    sent: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ending: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        for number in range(CLIENTS):
            thread = threading.Thread(target=self._post_on, args=(random.Random(number),), daemon=True)
            self._threads.append(thread)
        self._threads.append(threading.Thread(target=self._read_on, args=(random.Random(99),), daemon=True))
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        """One request on a connection of its own: after a fault none that was kept is of any use."""
        status, _, text = self._ask(self.port, method, path, body, {})
        return status, text

    def _ask(
        self, port: int, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]
    ) -> tuple[int, bool, bytes]:
        """Status, whether it is a repetition, and the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT)
        try:
            sent = {"content-type": "application/json", **headers}
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            return answer.status, answer.headers["idempotent-replayed"] == "true", answer.read()
        finally:
            connection.close()

    def wait_for_post(self, since: float, seconds: float) -> float:
        """When the first post that began after a moment was acknowledged; infinite when none was in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with self._lock:
                first = bisect(self.moments, (since, since))
                for done, begun in self.moments[first:]:
                    if begun > since:
                        return done
            time.sleep(0.01)
        return float("inf")

    def _post_on(self, chance: random.Random) -> None:
        number = 0
        while not self._ending.wait(_PAUSE):
            number += 1
            later = bool(self.others) and number % _LATER_EVERY == 0
            self._post(chance, with_samples=number % _SAMPLES_EVERY == 0, later=later)

    def _post(self, chance: random.Random, *, with_samples: bool, later: bool) -> None:
        tag = uuid4().hex
        matrix = [[chance.randint(1, 9) for _ in range(2)] for _ in range(2)]
        body = {
            "model": {"name": "faults", "version": str(chance.randint(1, 50))},
            "dataset": {"name": "faults"},
            "tags": {"tag": tag},
            "input": _as_predictions(matrix, tag) if with_samples else {"kind": "confusion_matrix", "matrix": matrix},
        }
        begun = time.monotonic()
        with self._lock:
            self.sent.add(tag)
        headers = {"prefer": "respond-async"} if later else {}
        if not self.others:
            self._try(self.port, body, begun, headers)
            return
        headers["idempotency-key"] = tag
        until = None
        # All faults are over by then: what is sent again for so long is acknowledged.
        while until is None or time.monotonic() < until:
            if self._try(chance.choice((self.port, *self.others)), body, begun, headers):
                break
            if until is None and self._ending.is_set():
                until = time.monotonic() + _PATIENCE
            time.sleep(_PAUSE)
        else:
            with self._lock:
                self.never += 1
            return
        if chance.random() < _SENT_TWICE:
            # As one whose answer was lost on the way.
            self._try(chance.choice((self.port, *self.others)), body, begun, headers)

    def _try(self, port: int, body: Mapping[str, Any], begun: float, headers: Mapping[str, str]) -> bool:
        """Send an evaluation once; whether it was acknowledged."""
        tag = body["tags"]["tag"]
        status, replayed = 0, False
        try:
            status, replayed, text = self._ask(port, "POST", "/v1/evaluations", body, headers)
        except (OSError, http.client.HTTPException):
            said = "no answer"
        else:
            said = str(status)
        with self._lock:
            self.answers[said] += 1
            self.replayed += replayed
            if status == http.client.ACCEPTED:
                job = f"/v1/jobs/{json.loads(text)['id']}"
                self.different += replayed and self.jobs.get(job, tag) != tag
                self.twice += not replayed and tag in self.jobs.values()
                self.jobs[job] = tag
            if status == http.client.CREATED:
                answer = json.loads(text)
                kept = Kept(tag, digest_of(answer), body["input"]["kind"] == "predictions")
                before = self.acknowledged.get(answer["id"])
                self.different += replayed and before not in (None, kept)
                self.twice += not replayed and before is not None
                self.acknowledged[answer["id"]] = kept
                self.moments.append((time.monotonic(), begun))
        return status in (http.client.CREATED, http.client.ACCEPTED)

    def wait_for_jobs(self) -> None:
        """Let all jobs come to their ends; what they have made counts as acknowledged then."""
        deadline = time.monotonic() + _JOB_PATIENCE
        for path, tag in self.jobs.items():
            while (job := self._read(path))["status"] in ("queued", "running") and time.monotonic() < deadline:
                time.sleep(0.05)
            if job["status"] != "succeeded":
                self.unfinished += 1
                continue
            made = self._read(job["result"])
            kept = Kept(tag, digest_of(made), made["input"]["kind"] == "predictions")
            self.twice += made["id"] in self.acknowledged
            self.acknowledged[made["id"]] = kept

    def _read(self, path: str) -> Any:
        status, text = self.ask("GET", path)
        assert status == http.client.OK, text
        return json.loads(text)

    def _read_on(self, chance: random.Random) -> None:
        while not self._ending.wait(2 * _PAUSE):
            with self._lock:
                known = list(self.acknowledged)
            if not known:
                continue
            try:
                status, _ = self.ask("GET", f"/v1/evaluations/{chance.choice(known)}")
                said = str(status)
            except (OSError, http.client.HTTPException):
                said = "no answer"
            with self._lock:
                self.reads[said] += 1


def digest_of(answer: Mapping[str, Any]) -> bytes:
    """What an evaluation says, short."""
    said = {name: answer[name] for name in ("tags", "metrics", "per_class", "model")}
    return sha256(json.dumps(said, sort_keys=True).encode()).digest()


def _as_predictions(matrix: list[list[int]], tag: str) -> dict[str, Any]:
    pairs = [(row, column) for row in range(2) for column in range(2) for _ in range(matrix[row][column])]
    return {
        "kind": "predictions",
        "y_true": [row for row, _ in pairs],
        "y_pred": [column for _, column in pairs],
        "sample_ids": [f"{tag}-{place}" for place in range(len(pairs))],
    }


@dataclass(frozen=True)
class Count:
    """What the database holds, against what was acknowledged."""

    kept: int
    lost: int
    twice: int
    strange: int
    half: int

    @property
    def good(self) -> bool:
        return not (self.lost or self.twice or self.strange or self.half)


async def count(dsn: str, posting: Posting) -> Count:
    """Read every evaluation and every row of samples."""
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch("SELECT id, tags ->> 'tag' AS tag FROM evaluations")
        with_samples = {row[0].hex for row in await connection.fetch("SELECT evaluation_id FROM evaluation_samples")}
        missing = await connection.fetchval(
            "SELECT count(*) FROM evaluation_samples AS s CROSS JOIN LATERAL unnest(ARRAY[truth, predicted, ids]) AS d "
            "LEFT JOIN sample_columns AS c ON c.project = s.project AND c.digest = d WHERE c.digest IS NULL"
        )
        links = await connection.fetchval(
            "SELECT count(*) FROM sample_columns AS c WHERE links <> (SELECT count(*) FROM evaluation_samples AS s "
            "WHERE s.project = c.project AND c.digest IN (s.truth, s.predicted, s.ids))"
        )
    finally:
        await connection.close()
    by_id = {row["id"].hex: row["tag"] for row in rows}
    tags = Counter(row["tag"] for row in rows)
    acknowledged = {identifier.replace("-", ""): kept for identifier, kept in posting.acknowledged.items()}
    without = {identifier for identifier, kept in acknowledged.items() if kept.with_samples} - with_samples
    return Count(
        kept=len(rows),
        lost=sum(by_id.get(identifier) != kept.tag for identifier, kept in acknowledged.items()),
        twice=posting.twice + sum(number - 1 for number in tags.values()),
        strange=sum(tag not in posting.sent for tag in tags),
        half=len(without) + len(with_samples - by_id.keys()) + missing + links,
    )


def check(dsn: str, posting: Posting, *, most: int = 300) -> Count:
    """Count, and read some of what was acknowledged over HTTP: it has to say what it said then.

    Raises:
        AssertionError: one says something else, or cannot be read.
    """
    known = random.Random(1).sample(list(posting.acknowledged), min(most, len(posting.acknowledged)))
    for identifier in known:
        status, text = posting.ask("GET", f"/v1/evaluations/{identifier}")
        assert status == http.client.OK, text
        assert digest_of(json.loads(text)) == posting.acknowledged[identifier].digest, identifier
    return asyncio.run(count(dsn, posting))
