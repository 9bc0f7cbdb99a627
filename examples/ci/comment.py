"""The one comment of a gate on a pull request of GitHub: written once, then updated.

`python comment.py gate.md` reads `GITHUB_API_URL`, `GITHUB_REPOSITORY`, `GITHUB_TOKEN` and the number `PULL_REQUEST`.
The first line of the file, which GitHub does not show, names gate, data set and split. The comment that begins with it
is updated.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

PAGE = 100


def asked(method: str, path: str, body: object = None) -> Any:
    """The answer of GitHub's API; ends the process with its reason where it refuses."""
    request = Request(  # noqa: S310 - the runner says the address
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
    )
    try:
        with urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
            return json.load(answer)
    except HTTPError as error:
        # The usual cause is a pull request from a fork, whose token may only read.
        sys.exit(f"no comment: {method} {path} was answered by {error.code} {error.reason}")


def written(text: str, number: str) -> str:
    """Write or update the comment; the answer is its address."""
    marker = text.partition("\n")[0]
    page = 1
    while comments := asked("GET", f"{number}/comments?per_page={PAGE}&page={page}"):
        for comment in comments:
            if (comment["body"] or "").partition("\n")[0].strip() == marker:
                return str(asked("PATCH", f"comments/{comment['id']}", {"body": text})["html_url"])
        page += 1
    return str(asked("POST", f"{number}/comments", {"body": text})["html_url"])


if __name__ == "__main__":
    print(written(Path(sys.argv[1]).read_text(encoding="utf-8"), os.environ["PULL_REQUEST"]))
