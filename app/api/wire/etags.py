"""What a client has already is not sent again: `ETag` and `If-None-Match` of all that is read."""

from hashlib import blake2b
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response


def unless_known(request: Request, answer: Response) -> Response:
    """An answer with its tag, or 304 when the client names that one.

    The tag is weak: packed or not, the answer is the same.
    """
    if answer.status_code != HTTPStatus.OK:
        return answer
    tag = f'W/"{blake2b(answer.body, digest_size=12).hexdigest()}"'
    asked = request.headers.get("if-none-match", "")
    if asked and (asked.strip() == "*" or _opaque(tag) in map(_opaque, asked.split(","))):
        vary = {"Vary": answer.headers["vary"]} if "vary" in answer.headers else {}
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag, **vary})
    answer.headers["ETag"] = tag
    return answer


def _opaque(tag: str) -> str:
    """What is compared of a tag (RFC 9110, section 8.8.3.2)."""
    return tag.strip().removeprefix("W/")
