"""`login`, `logout` and `status`: the key that is kept for an address, and what is used."""

import argparse
import getpass
import sys
from argparse import Namespace
from typing import Any, Final

from prevail import settings
from prevail.client import Client
from prevail.command.codes import DONE, UsageError
from prevail.command.output import emit
from prevail.settings import Kept

COMMANDS: Final = ("login", "logout", "status")


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    """The commands and what they take."""
    login = commands.add_parser("login", parents=[common], help="keep a key for an address")
    login.add_argument("--stdin", action="store_true", help="read the key from the standard input")
    login.set_defaults(carry_out=_login)
    logout = commands.add_parser("logout", parents=[common], help="forget the key of an address")
    logout.set_defaults(carry_out=_logout)
    status = commands.add_parser("status", parents=[common], help="address, key and version: is all well?")
    status.set_defaults(carry_out=_status)


def _login(client: Client, chosen: Namespace) -> int:
    if not chosen.stdin and not sys.stdin.isatty():
        raise UsageError("login asks for the key on a terminal; elsewhere: prevail login --stdin < FILE")
    key = (sys.stdin.readline() if chosen.stdin else getpass.getpass(f"Key for {client.url}: ")).strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError("expected a key, such as pv_…")
    with Client(client.url, api_key=key, project=chosen.project, timeout=chosen.timeout) as tried:
        # What is refused is not kept.
        tried.models(limit=1)
    found = settings.kept()
    settings.keep(Kept(client.url, {**found.keys, client.url: key}))
    print(f"The key for {client.url} is in {settings.path()}, readable by you alone.", file=sys.stderr)
    return DONE


def _logout(client: Client, _: Namespace) -> int:
    found = settings.kept()
    if client.url not in found.keys:
        print(f"There is no key for {client.url} in {settings.path()}.", file=sys.stderr)
        return DONE
    left = {url: key for url, key in found.keys.items() if url != client.url}
    settings.keep(Kept(None if found.url == client.url else found.url, left))
    print(
        f"The key for {client.url} is forgotten here. It is valid still: `prevail keys revoke` ends it.",
        file=sys.stderr,
    )
    return DONE


def _status(client: Client, chosen: Namespace) -> int:
    found, used = client.status(), client.settings
    shown = "none" if used.key is None else f"{used.key[:5]}… from {used.key_from}"
    found.data.update({"address": client.url, "address from": used.url_from, "key": shown})
    emit(client, found, chosen)
    # The version is told to everybody; this takes a key.
    client.models(limit=1)
    return DONE
