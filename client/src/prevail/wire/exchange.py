"""One request until its answer: tried again where that helps, an error where it is refused; jobs to their end."""

import random
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from prevail.errors import JobFailed, failure, no_answer, problem_error, unexpected
from prevail.wire.steps import Call, Flow, Lost, Pause, Reply

TEMPORARY: Final = frozenset({429, 502, 503, 504})
# A request with the same key is being worked on: its answer will come.
IN_FLIGHT: Final = "idempotency_key_in_flight"
FINISHED: Final = frozenset({"succeeded", "failed", "cancelled"})
KEY: Final = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Retries:
    """Number and pauses of repeated tries.

    Attributes:
        times: After the first try.
        first: Seconds before the second try; then twice as many each time.
        longest: Seconds between two tries at most, unless the service asks for more.
        together: Seconds after which there are no more tries.
    """

    times: int = 4
    first: float = 0.5
    longest: float = 8.0
    together: float = 60.0

    def wait(self, tried: int, asked: float | None) -> float:
        """Seconds to wait after so many tries; what the service asks for counts, if it asks for more.

        Spread, so that clients that were refused together do not come again together.
        """
        usual: float = min(self.first * 2 ** (tried - 1), self.longest) * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
        return usual if asked is None else max(asked, usual)


def exchange(call: Call, retries: Retries) -> Flow[Reply]:
    """Send a request until it is answered; returns the answer, a success.

    Raises:
        PrevailError: it is refused, or nobody answered in time.
    """
    if call.method in ("POST", "PUT") and KEY not in call.headers:
        # The same one for every try: what was done is not done twice.
        call = replace(call, headers={**call.headers, KEY: str(uuid.uuid4())})
    begun, tried = time.monotonic(), 0
    while True:
        outcome: Reply | Lost = yield call
        tried += 1
        if isinstance(outcome, Reply) and _is_settled(outcome, call, tried):
            return outcome
        wait = retries.wait(tried, _asked_wait(outcome))
        passed = time.monotonic() - begun
        if not _is_temporary(outcome) or tried > retries.times or passed + wait > retries.together:
            said = f" ({tried} tries in {passed:.0f} s)" if tried > 1 else ""
            raise failure(outcome, said) if isinstance(outcome, Reply) else no_answer(outcome, said)
        yield Pause(wait)


def _is_settled(reply: Reply, call: Call, tried: int) -> bool:
    if 200 <= reply.status < 300:
        return True
    # The answer to the try before was lost, and it did what it was to do.
    return call.method == "DELETE" and tried > 1 and reply.status == 404


def _is_temporary(outcome: Reply | Lost) -> bool:
    if isinstance(outcome, Lost):
        return not outcome.lasting
    return outcome.status in TEMPORARY or (outcome.status == 409 and failure(outcome).code == IN_FLIGHT)


def _asked_wait(outcome: Reply | Lost) -> float | None:
    """Seconds of `Retry-After`: a number, or a date."""
    text = outcome.headers.get("retry-after") if isinstance(outcome, Reply) else None
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (zoned - datetime.now(UTC)).total_seconds())


def answered(call: Call, retries: Retries) -> Flow[dict[str, Any]]:
    """The answer as JSON. Raises as `completed`."""
    reply = yield from completed(call, retries)
    return content_of(reply)


def completed(call: Call, retries: Retries) -> Flow[Reply]:
    """The answer; of a request that is answered by a job, the result of the job.

    Raises:
        PrevailError: it is refused, nobody answered in time, or the job failed.
    """
    reply = yield from exchange(call, retries)
    if reply.status != 202:
        return reply
    job = yield from followed(reply.headers.get("location", ""), retries)
    # What a job has computed is kept as it was asked for; what it has made is read in that form.
    headers = {name: value for name, value in call.headers.items() if name == "Accept"}
    return (yield from exchange(Call("GET", str(job["result"]), headers=headers), retries))


def content_of(reply: Reply) -> dict[str, Any]:
    """The object that an answer is.

    Raises:
        ServerFault: it is something else.
    """
    try:
        found = reply.json() if reply.is_json else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise unexpected(reply)
    return found


def followed(location: str, retries: Retries, timeout: float | None = None) -> Flow[dict[str, Any]]:
    """A job once it has ended well, as the service says it.

    Raises:
        JobFailed: it ended otherwise, or not in time; it goes on then.
        PrevailError: its problem, or it cannot be asked for.
    """
    ends = None if timeout is None else time.monotonic() + timeout
    for wait in _rhythm():
        reply = yield from exchange(Call("GET", location), retries)
        job = content_of(reply)
        status = job.get("status")
        if status == "succeeded":
            return job
        if status in FINISHED:
            raise _job_error(job)
        if ends is not None and time.monotonic() > ends:
            raise JobFailed(f"job {job.get('id')} is still {status} after {timeout:g} s; it goes on", code="timeout")
        yield Pause(max(wait, _asked_wait(reply) or 0.0))
    raise AssertionError("the rhythm has no end")


def _rhythm() -> Iterator[float]:
    seconds = 0.05
    while True:
        yield seconds
        seconds = min(seconds * 1.5, 2.0)


def _job_error(job: Mapping[str, Any]) -> Exception:
    problem = job.get("problem")
    if isinstance(problem, Mapping):
        return problem_error(problem)
    return JobFailed(f"job {job.get('id')} was {job.get('status')}", code=f"job_{job.get('status')}")
