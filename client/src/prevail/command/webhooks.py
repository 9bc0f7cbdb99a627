"""Commands about webhooks: who is told of what, and whether it arrived."""

import argparse
import time
from argparse import Namespace
from typing import Any, Final

from prevail.client import Client
from prevail.command.codes import DONE, NO_ANSWER
from prevail.command.output import emit, put

COMMANDS: Final = ("webhook",)
# Seconds in which a first attempt has an outcome: a receiver has 15 to answer.
_ARRIVES: Final = 20.0
_EVENTS: Final = ("evaluation.created", "gate.checked", "job.finished", "model.changed")


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    """The commands and what they take."""
    tasks = commands.add_parser("webhook", help="put | test | list | deliveries | retry | delete").add_subparsers(
        dest="task", required=True, metavar="TASK"
    )
    put_hook = tasks.add_parser("put", parents=[common], help="have an address told of events; prints the secret once")
    put_hook.add_argument("name", metavar="NAME")
    put_hook.add_argument("address", metavar="URL")
    put_hook.add_argument(
        "--event", action="append", choices=_EVENTS, help="repeat for several (default: gate.checked)"
    )
    put_hook.set_defaults(carry_out=_put)
    test = tasks.add_parser("test", parents=[common], help="send a test message, and wait until it arrives")
    test.add_argument("name", metavar="NAME")
    test.set_defaults(carry_out=_test)
    tasks.add_parser("list", parents=[common], help="the webhooks").set_defaults(carry_out=_list)
    sent = tasks.add_parser("deliveries", parents=[common], help="what was sent, the latest first, and what came of it")
    sent.add_argument("name", metavar="NAME")
    sent.add_argument("--status", choices=["pending", "delivered", "failed"])
    sent.add_argument("--limit", type=int, default=20, metavar="N", help="how many (default: 20)")
    sent.set_defaults(carry_out=_deliveries)
    retry = tasks.add_parser("retry", parents=[common], help="send a message again")
    retry.add_argument("name", metavar="NAME")
    retry.add_argument("delivery", metavar="ID", help="from `prevail webhook deliveries`")
    retry.set_defaults(carry_out=_retry)
    delete = tasks.add_parser("delete", parents=[common], help="end a webhook; what waits is not sent")
    delete.add_argument("name", metavar="NAME")
    delete.set_defaults(carry_out=_delete)


def _put(client: Client, chosen: Namespace) -> int:
    found = client.put_webhook(chosen.name, chosen.address, chosen.event or ["gate.checked"])
    if chosen.output != "text":
        emit(client, found, chosen)
        return DONE
    lines = [f"webhook {found['name']}: {', '.join(found['events'])} to {found['url']}"]
    if found.data.get("secret"):
        lines.append(f"  secret {found['secret']}, shown only now: receivers check the signature with it")
    put("\n".join(lines), chosen)
    return DONE


def _test(client: Client, chosen: Namespace) -> int:
    asked, until = client.test_webhook(chosen.name), time.monotonic() + _ARRIVES
    while True:
        (found,) = (one for one in client.deliveries(chosen.name, limit=100) if one["id"] == asked["id"])
        if found["response_status"] or found["error"] or time.monotonic() > until:
            break
        time.sleep(0.2)
    arrived = found["status"] == "delivered"
    if chosen.output != "text":
        emit(client, asked, chosen)
    elif arrived:
        put(f"webhook {chosen.name}: the test arrived, status {found['response_status']}", chosen)
    else:
        put(f"webhook {chosen.name}: the test has not arrived: {found['error'] or 'it was not sent yet'}", chosen)
    return DONE if arrived else NO_ANSWER


def _list(client: Client, chosen: Namespace) -> int:
    emit(client, client.webhooks(), chosen)
    return DONE


def _deliveries(client: Client, chosen: Namespace) -> int:
    emit(client, client.deliveries(chosen.name, status=chosen.status, limit=chosen.limit), chosen)
    return DONE


def _retry(client: Client, chosen: Namespace) -> int:
    emit(client, client.retry_delivery(chosen.name, chosen.delivery), chosen)
    return DONE


def _delete(client: Client, chosen: Namespace) -> int:
    client.delete_webhook(chosen.name)
    return DONE
