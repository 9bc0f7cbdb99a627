"""Requests as they are written down, with names for what earlier ones were answered."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Json = dict[str, Any]
# `$name` is the id in the answer to the request of that name, `$name:/a/0` what a JSON pointer finds there.
_REFERENCE = re.compile(r"\$(?P<name>[a-z0-9][a-z0-9-]*)(?::(?P<pointer>(?:/[A-Za-z0-9_]+)+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request.

    Attributes:
        name: unlike all others of its group.
        path: may hold references, as may every text in ``json`` and ``params``.
        content: the bytes of a body that is not simply JSON.
        upload: a file beside the JSON, as a form of two parts.
        until_ended: sent until the job that is answered has ended.
    """

    name: str
    method: str
    path: str
    json: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    upload: bytes | None = None
    until_ended: bool = False

    def arguments(self, answers: Mapping[str, Any]) -> Json:
        """The arguments of ``httpx.Client.request``, references replaced by what earlier answers say."""
        put_in = _putting_in(answers)
        made: Json = {
            "method": self.method,
            "url": put_in(self.path),
            "params": put_in(dict(self.params)),
            "headers": dict(self.headers),
        }
        if self.upload is not None:
            made["data"] = {} if self.json is None else {"evaluation": json.dumps(self.json)}
            made["files"] = {"data": ("samples", self.upload, "application/octet-stream")}
        elif self.content is not None:
            made["content"] = self.content
        elif self.json is not None:
            made["json"] = put_in(self.json)
        return made


def _putting_in(answers: Mapping[str, Any]) -> Callable[[Any], Any]:
    def found(match: re.Match[str]) -> str:
        value = answers[match["name"]]
        for part in (match["pointer"] or "/id")[1:].split("/"):
            value = value[int(part)] if isinstance(value, list) else value[part]
        return str(value)

    def put_in(value: Any) -> Any:
        if isinstance(value, str):
            return _REFERENCE.sub(found, value)
        if isinstance(value, dict):
            return {put_in(name): put_in(member) for name, member in value.items()}
        return [put_in(item) for item in value] if isinstance(value, list) else value

    return put_in


def get(name: str, path: str, **params: Any) -> Call:
    """A reading request."""
    return Call(name=name, method="GET", path=path, params=params)


def post(name: str, path: str, body: Any, **params: Any) -> Call:
    """A request with a JSON body."""
    return Call(name=name, method="POST", path=path, json=body, params=params)


def put(name: str, path: str, body: Any) -> Call:
    """The same, to put something in its place."""
    return Call(name=name, method="PUT", path=path, json=body)


def delete(name: str, path: str) -> Call:
    """A request to remove something."""
    return Call(name=name, method="DELETE", path=path)


def compute(name: str, source: Json, **options: Any) -> Call:
    """The report of an input that is not saved."""
    return post(name, "/v1/metrics/compute", {"input": source, "options": options})


def evaluation(source: Json, model: str = "m", dataset: str = "d", **members: Any) -> Json:
    """What is sent to keep an evaluation; `model` and `dataset` may be `name/version` and `name/version/split`."""
    named = dict(zip(("name", "version"), model.split("/"), strict=False))
    on = dict(zip(("name", "version", "split"), dataset.split("/"), strict=False))
    return {"model": named, "dataset": on, "input": source, **members}


def later(call: Call) -> Call:
    """A request that is answered later."""
    return replace(call, headers={**call.headers, "Prefer": "respond-async"})


def keep(name: str, source: Json, model: str = "m", dataset: str = "d", **members: Any) -> Call:
    """A request to keep an evaluation."""
    return post(name, "/v1/evaluations", evaluation(source, model, dataset, **members))
