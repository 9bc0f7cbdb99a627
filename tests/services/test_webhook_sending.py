"""What becomes of a delivery, and the signature that it has."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from uuid import UUID

import pytest
import standardwebhooks

from app.domain.operations import DeliveryStatus, Order, Outgoing, SendResult
from app.services.ports import Waits
from app.services.present import Observer
from app.services.webhooks import PAUSES, Sender, is_secret, make_secret, signed_headers

pytestmark = pytest.mark.anyio
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ORDER = Order(project="p", webhook="hook", id=UUID("01900000-0000-7000-8000-000000000001"), asked=1)
GOOD, BAD = SendResult(204, None), SendResult(500, "expected a status of 200 to 299, got 500")


class Memory:
    """An outbox with one delivery, and somebody who is told of it."""

    def __init__(self, attempts: int, answer: SendResult) -> None:
        self.attempts, self.answer = attempts, answer
        self.posted: list[tuple[str, Mapping[str, str], bytes]] = []
        self.settled: list[tuple[DeliveryStatus, SendResult, timedelta | None]] = []

    async def begin(self, order: Order) -> Outgoing | None:
        assert order == ORDER
        url = "https://hooks.example/in"
        return Outgoing(order=order, url=url, secret=SECRET, body=b"{}", attempts=self.attempts)

    async def settle(
        self, outgoing: Outgoing, status: DeliveryStatus, sent: SendResult, pause: timedelta | None
    ) -> None:
        assert outgoing.order == ORDER
        self.settled.append((status, sent, pause))

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> SendResult:
        self.posted.append((url, headers, body))
        return self.answer


class Nothing(Memory):
    async def begin(self, order: Order) -> Outgoing | None:
        return None


class Heard(Observer):
    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def observed(self, what: str, amount: float, **labels: str) -> None:
        self.outcomes.append(labels["outcome"])


async def sent(memory: Memory) -> str:
    """The outcome that is counted."""
    heard = Heard()
    await Sender(memory, memory.post, heard).send(ORDER)
    return heard.outcomes[0]


async def test_what_arrives_is_delivered() -> None:
    memory = Memory(1, GOOD)
    assert await sent(memory) == "delivered"
    assert memory.settled == [(DeliveryStatus.DELIVERED, GOOD, None)]
    ((url, headers, body),) = memory.posted
    assert (url, body, headers["webhook-id"]) == ("https://hooks.example/in", b"{}", str(ORDER.id))
    standardwebhooks.Webhook(SECRET).verify(body, dict(headers))


@pytest.mark.parametrize("attempts", range(1, len(PAUSES) + 1))
async def test_what_does_not_arrive_waits_longer_each_time(attempts: int) -> None:
    memory = Memory(attempts, BAD)
    with pytest.raises(Waits) as raised:
        await sent(memory)
    ((status, answer, pause),) = memory.settled
    assert (status, answer) == (DeliveryStatus.PENDING, BAD)
    assert pause is not None
    assert pause.total_seconds() == pytest.approx(raised.value.seconds, abs=1e-6)
    # Not all at the same moment.
    usual = PAUSES[attempts - 1]
    assert 0.8 * usual <= raised.value.seconds <= 1.2 * usual
    assert list(PAUSES) == sorted(PAUSES)


async def test_there_is_an_end() -> None:
    memory = Memory(len(PAUSES) + 1, BAD)
    assert await sent(memory) == "failed"
    assert memory.settled == [(DeliveryStatus.FAILED, BAD, None)]
    assert len(memory.posted) == 1


async def test_who_is_gone_is_not_asked_again() -> None:
    memory = Memory(1, SendResult(HTTPStatus.GONE, "expected a status of 200 to 299, got 410"))
    assert await sent(memory) == "failed"


async def test_senders_that_are_lost_are_not_replaced_for_ever() -> None:
    """Whoever began and never said how it went has counted too."""
    memory = Memory(len(PAUSES) + 2, GOOD)
    assert await sent(memory) == "failed"
    assert memory.posted == []


async def test_what_is_not_to_be_sent_any_more_is_not_sent() -> None:
    memory = Nothing(1, GOOD)
    heard = Heard()
    await Sender(memory, memory.post, heard).send(ORDER)
    assert (memory.posted, memory.settled, heard.outcomes) == ([], [], [])


def test_signatures_are_those_of_the_specification() -> None:
    """The vector that the libraries of Standard Webhooks are tested with."""
    headers = signed_headers(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_signatures_are_those_of_another_library() -> None:
    secret, body = make_secret(), '{"type": "gate.checked", "ä": 1}'
    assert is_secret(secret)
    moment = datetime(2026, 11, 22, 14, 5, 6, tzinfo=UTC)
    headers = signed_headers(secret, "id", int(moment.timestamp()), body.encode())
    assert headers["webhook-signature"] == standardwebhooks.Webhook(secret).sign("id", moment, body)


@pytest.mark.parametrize(
    "text",
    ["secret", "whsec_c2hvcnQ=", *(f"whsec_{sign * size}" for sign, size in (("?", 40), ("A", 90), ("é", 43))), ""],
)
def test_what_is_no_secret(text: str) -> None:
    assert not is_secret(text)
