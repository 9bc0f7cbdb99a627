"""The command `prevail`: arguments parsed, carried out, and ended with an exit code."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from prevail.client import Client
from prevail.command import codes, colours, gates, keys, operators, questions, runs, webhooks
from prevail.command.completion import script
from prevail.errors import PrevailError
from prevail.local import local

SUMMARY = "Evaluate classifiers, compare them, and decide with a gate."
# The commands of the client, in the order of the help.
_ROOMS = (runs, gates, questions, webhooks, keys)


class Parser(argparse.ArgumentParser):
    """A parser whose complaints never look like a verdict."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and how it is meant."""
        name, _, fault = message.removeprefix("argument ").partition(": ")
        if fault == "expected one argument":
            message += f"; one that begins with - is written as {name.split('/')[-1]}=-..."
        self.exit(codes.USAGE, f"{self.format_usage()}{self.prog}: {message}\n")


def parser() -> Parser:
    """Return the parser of the client's commands."""
    root = Parser(
        prog="prevail",
        description=SUMMARY,
        epilog=f"{codes.MEANINGS}\nRUN is an id, MODEL:VERSION or TAG=VALUE: the latest such evaluation,\n"
        "of one data set and split: name them where there are several.\n"
        f"For operators: {', '.join(operators.names()) or 'install the service to serve, migrate and make keys'}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for room in _ROOMS:
        room.add_commands(commands, common())
    completion = commands.add_parser("completion", help="print what completes the command in a shell")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])
    completion.set_defaults(carry_out=None)
    return root


def common() -> argparse.ArgumentParser:
    """Options that all commands have."""
    found = argparse.ArgumentParser(add_help=False)
    found.add_argument("--url", help="address of the service (default: PREVAIL_URL, that of login, this machine)")
    found.add_argument("--project", help="of an admin key: the project to act in (default: PREVAIL_PROJECT)")
    found.add_argument("--timeout", type=float, help="seconds (default: PREVAIL_TIMEOUT, else 60)")
    found.add_argument("-o", "--output", choices=["text", "json", "markdown", "csv", "html"], default="text")
    found.add_argument("--json", action="store_const", const="json", dest="output", help="the same as -o json")
    found.add_argument("--color", choices=["auto", "always", "never"], default="auto", help="auto: on a terminal")
    found.add_argument("--write", metavar="FILE", help="write the answer to a file")
    return found


def main(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code of the process."""
    try:
        if arguments and operators.is_command(arguments[0], parser_of_client=known_commands()):
            return operators.run(arguments)
        chosen = parser().parse_args(arguments)
        if chosen.command == "completion":
            print(script(chosen.shell, parser(), operators.names()), end="")
            return codes.DONE
        # Before anything starts: a service inside takes seconds.
        if hasattr(chosen, "refuse"):
            chosen.refuse(chosen)
        with _client(chosen) as client:
            code: int = chosen.carry_out(client, chosen)
            sys.stdout.flush()
            return code
    except SystemExit as end:
        # Of a parser: help, or a complaint.
        return end.code if isinstance(end.code, int) else codes.DONE if end.code is None else codes.USAGE
    except codes.UsageError as error:
        return _complain(error, codes.USAGE)
    except PrevailError as error:
        return _complain(error, codes.code_of(error))
    except KeyboardInterrupt:
        return codes.STOPPED
    except BrokenPipeError:
        # Whoever read has enough. What is still held is not to be written at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return codes.STOPPED
    except Exception:  # noqa: BLE001 - whatever it is, it must not look like a verdict
        traceback.print_exc()
        return _complain("this is a bug of the command line, not of what you did", codes.BUG)


def known_commands() -> frozenset[str]:
    """The names of the commands that the client has itself."""
    return frozenset(("completion", *(name for room in _ROOMS for name in room.COMMANDS)))


def _complain(error: object, code: int) -> int:
    print(colours.marked(f"error: {error}", on=colours.wanted(sys.stderr)), file=sys.stderr)
    return code


def _client(chosen: argparse.Namespace) -> Client:
    if getattr(chosen, "local", False):
        return local()
    return Client(chosen.url, project=chosen.project, timeout=chosen.timeout)
