"""A service that reads data by reference, and has little memory for it; requests that name such data."""

from typing import Any

import httpx
import numpy as np
import pyarrow as pa
from pydantic import SecretStr

from app.settings import Authentication, Settings
from tests.api.answers import Json, evaluation
from tests.api.jobs import result

PREDICTIONS = {"y_true": "label", "y_pred": "guess"}


def settings_for(database_url: str, *prefixes: str, **others: Any) -> Settings:
    """As little memory as can be: of columns with more than 43,690 rows."""
    return Settings(
        database_url=SecretStr(database_url),
        authentication=Authentication.off,
        data_prefixes=prefixes,
        data_memory_bytes=1 << 20,
        **others,
    )


def named(uri: Any, columns: Any = PREDICTIONS, kind: str = "predictions", **members: Any) -> Json:
    data: Json = {name: members.pop(name) for name in ("format", "filter", "version") if name in members}
    if "joined" in members:
        data["labels"] = members.pop("joined")
    return {"kind": kind, "data": {"uri": str(uri), "columns": columns, **data}, **members}


def later(client: httpx.Client, source: Json, **options: Any) -> Json:
    """The report of data that is named."""
    reply = client.post("/v1/metrics/compute", json={"input": source, "options": options})
    assert reply.status_code == 202, reply.text
    assert "preference-applied" not in reply.headers
    answer: Json = result(client, reply.json()).json()
    return answer


def lists(table: pa.Table, *names: str) -> Any:
    return np.column_stack([table[name].to_numpy() for name in names]).tolist()


def keep(client: httpx.Client, source: Json, **arguments: Any) -> httpx.Response:
    headers = arguments.pop("headers", {})
    return client.post("/v1/evaluations", json=evaluation(input=source, **arguments), headers=headers)
