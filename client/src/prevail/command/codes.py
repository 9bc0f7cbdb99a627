"""Exit codes. 0, 1 and 2 of a gate are verdicts, and nothing else of the client ends with 1 or 2."""

from typing import Final

from prevail.errors import NoAnswer, NotAllowed, NotFound, Overloaded, PrevailError, ServerFault

DONE: Final = 0
VERDICTS: Final = {"pass": 0, "fail": 1, "inconclusive": 2}
USAGE: Final = 3
NOT_ALLOWED: Final = 4
REFUSED: Final = 5
NOT_THERE: Final = 6
NO_ANSWER: Final = 7
BUG: Final = 70
STOPPED: Final = 130
MEANINGS: Final = """exit codes: 0 done, or the gate passes; 1 the gate fails; 2 the gate is inconclusive; 3 wrong
usage; 4 no key, or not allowed; 5 the data was refused; 6 not there; 7 no answer; 70 a bug; 130 stopped"""


def code_of(error: PrevailError) -> int:
    """The exit code of what went wrong."""
    if isinstance(error, NotAllowed):
        return NOT_ALLOWED
    if isinstance(error, NotFound):
        return NOT_THERE
    return NO_ANSWER if isinstance(error, NoAnswer | Overloaded | ServerFault) else REFUSED


class UsageError(Exception):
    """The arguments have no meaning together; raised before anything is sent."""
