"""Settings of the service, read once from the environment (prefix `PREVAIL_`).

`docs/reference/settings.md` is generated from the descriptions below by `make docs`.
"""

import os
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    DirectoryPath,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.domain.identifiers import is_project_name
from app.outbound.data import read_prefix

DRIVER_SCHEME = "postgresql+asyncpg"
SCHEMES = frozenset({"postgres", "postgresql", DRIVER_SCHEME, "postgresql+psycopg", "postgresql+psycopg2"})
# libpq knows many more parameters; those asyncpg would not understand are refused here, not deep inside a connect.
URL_PARAMETERS = frozenset({"host", "port", "ssl", "sslmode", "target_session_attrs", "prepared_statement_cache_size"})

PREFIX = "PREVAIL_"
# Not the service's own: ports and memory of the compose file, the server of the tests, what the client reads, …
_OTHERS_VARIABLES = frozenset(
    {
        *("PREVAIL_PORTS", "PREVAIL_MEMORY", "PREVAIL_TEST_DATABASE_URL"),
        *("PREVAIL_URL", "PREVAIL_API_KEY", "PREVAIL_PROJECT", "PREVAIL_TIMEOUT", "PREVAIL_RUN"),
    }
)
# … and what Kubernetes tells a pod of services whose names begin with "prevail".
_SERVICE_LINK = re.compile(r"PREVAIL_(\w+_)?(SERVICE_(HOST|PORT\w*)=|PORT_\d+_(TCP|UDP|SCTP)\w*=|PORT=\w+://)")
# As browsers write them: in small letters, without a path, and without the port that goes without saying.
_ORIGIN = r"(?!http://.*:80$|https://.*:443$)[a-z][a-z0-9+.-]*://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?"
_HOST = r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*|[0-9a-f:.]*:[0-9a-f:.]*"

# The system and Postgres count milliseconds in 31 bits; and sums of a few are numbers for both.
_MOST_SECONDS = 24 * 86_400
_MOST = 2**60


class Authentication(StrEnum):
    """Requests that need an API key."""

    auto = "auto"
    keys = "keys"
    off = "off"


class MetricsAccess(StrEnum):
    """Access to the metrics of the service."""

    admin = "admin"
    open = "open"
    off = "off"


class LogLevel(StrEnum):
    """Least severity of the messages in the log."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def normalize_database_url(url: str) -> str:
    """Rewrite any usual Postgres URL to the form SQLAlchemy's asyncpg dialect wants.

    Raises:
        ValueError: not a Postgres URL, or with a parameter the driver does not know. The message never holds the URL.
    """
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError as error:
        raise ValueError("expected a URL such as postgresql://user:password@host:5432/database") from error
    if parts.scheme not in SCHEMES:
        came = f"the scheme {parts.scheme!r}" if "://" in url else "no scheme"
        raise ValueError(f"expected a URL starting with postgresql://, got one with {came}")
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    unknown = sorted({name for name, _ in parameters} - URL_PARAMETERS)
    if unknown:
        raise ValueError(f"unknown URL parameters {unknown}; known are {sorted(URL_PARAMETERS)}")
    if not parts.path.strip("/"):
        raise ValueError("expected the name of a database at the end of the URL")
    query = urlencode([("ssl" if name == "sslmode" else name, value) for name, value in parameters], quote_via=quote)
    return f"{DRIVER_SCHEME}://{parts.netloc}{parts.path}" + (f"?{query}" if query else "")


def _normalize_secret(url: SecretStr) -> SecretStr:
    return SecretStr(normalize_database_url(url.get_secret_value()))


def _rate(text: str) -> str:
    # Only here: few set it, and every command reads the settings.
    from app.services.access import is_rate

    if not is_rate(text):
        raise ValueError(f"expected a rate such as 100/second; 10000/hour, got {text!r}")
    return text


def _separated(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _retention(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    days: dict[str, str] = {}
    for part in _separated(value):
        project, number = (each.strip() for each in part.partition("=")[::2])
        if not is_project_name(project):
            raise ValueError(f"expected projects and days, such as fraud=90,churn=365, got {part!r}")
        if project in days:
            raise ValueError(f"expected each project once, got {project} twice")
        days[project] = number
    return days


def _each(form: str, example: str) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """A check that every part of a list has a form."""

    def check(parts: tuple[str, ...]) -> tuple[str, ...]:
        for part in parts:
            if part != "*" and re.fullmatch(form, part, re.ASCII) is None:
                raise ValueError(f"expected {example} or *, got {part!r}")
        return parts

    return check


def _cluster(address: str) -> str:
    """An address of Spark; raises ValueError for others, or where the library that speaks to it is not there."""
    if not re.fullmatch(r"sc://[^\s@]+|local\[(\d+|\*)\]", address):
        raise ValueError("expected sc://host:port of a server of Spark Connect, or local[2]")
    if find_spec("pyspark") is None or find_spec("sqlglot") is None:
        raise ValueError('expected the extra spark, which is not installed: pip install "prevail-server[spark]"')
    return address


def _traces(wanted: Any) -> Any:
    if wanted and not any(distributions(name="opentelemetry-exporter-otlp-proto-http")):
        raise ValueError('expected the extra otel, which is not installed: pip install "prevail-server[otel]"')
    return wanted


def _writable(folder: Path) -> Path:
    there = next(one for one in (folder, *folder.absolute().parents) if os.access(one, os.F_OK))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"expected a folder that can be written, {there} is none")
    return folder


def _prefixes(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    for prefix in prefixes:
        read_prefix(prefix)
    return prefixes


Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_separated)]
Origins = Annotated[Listed, AfterValidator(_each(_ORIGIN, "an origin such as https://board.example"))]
Hosts = Annotated[Listed, AfterValidator(_each(_HOST, "a name such as prevail.example, *.corp.example"))]
Days = Annotated[int, Field(ge=1, le=36_500)]
Rate = Annotated[str, AfterValidator(_rate)]
Folder = Annotated[Path, AfterValidator(_writable)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_normalize_secret)]


class Settings(BaseSettings):
    """The settings of one service; frozen once read."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        extra="ignore",
        hide_input_in_errors=True,
        allow_inf_nan=False,
        env_ignore_empty=True,
        validate_default=True,
    )

    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on. The default is this machine only.")
    port: int = Field(8000, ge=1, le=65535, description="Port to listen on.")
    workers: int = Field(
        1, ge=1, le=64, description="Server processes, each with connections and compute processes of its own."
    )
    log_level: LogLevel = Field(LogLevel.info, description="How much is logged: `debug`, `info`, `warning` or `error`.")
    access_log: bool = Field(default=False, description="Write one line of JSON per request on standard output.")
    metrics_access: MetricsAccess = Field(
        MetricsAccess.admin,
        description="Who may read `GET /metrics`. `admin`: who may administer, with a key of that scope. `open`: "
        "whoever reaches the service. `off`: nobody, and nothing is counted.",
    )
    metrics_token: SecretStr | None = Field(
        None,
        min_length=16,
        description="A bearer token that reads `GET /metrics` and nothing else. It needs no database, so that metrics "
        "can be read while the database is down.",
    )
    otel: Annotated[bool, AfterValidator(_traces)] = Field(
        default=False,
        description="Make traces of requests, computations and uses of the database for OpenTelemetry, whose own "
        "variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, …) say where they go. Needs the extra `otel`.",
    )
    shutdown_seconds: int = Field(
        20, ge=1, description="How long a stop waits for requests under way before it cuts them off."
    )

    authentication: Authentication = Field(
        Authentication.auto,
        description="Who needs an API key. `auto`: everybody; as long as there is no key at all, requests from this "
        "machine need none. `keys`: everybody, always. `off`: nobody, for a service that is reached only through "
        "something that checks who asks.",
    )
    key_rate: Rate | None = Field(
        None,
        description="How often a key may be used that has no rate of its own, such as `100/second; 10000/hour`; "
        "per worker. Unset: as often as it likes.",
    )
    quota_evaluations: int | None = Field(
        None, ge=1, description="Evaluations that a project may keep in a day (UTC); one more is answered `429`."
    )
    quota_bytes: int | None = Field(
        None,
        ge=1,
        description="Bytes that a project may send to be stored in a day (UTC), as bodies; beyond that `507`.",
    )
    quota_compute_seconds: float | None = Field(
        None, gt=0, description="Seconds that a project may have computed in a day (UTC); beyond that `429`."
    )
    cors_origins: Origins = Field(
        (),
        description="Origins whose pages browsers let ask this service, such as `https://board.example`, with commas "
        "between them; `*` is all. Unset: none.",
    )
    allowed_hosts: Hosts = Field(
        (),
        description="Names under which the service is asked (`Host`), such as `prevail.example, *.corp.example`, with "
        "commas between them; `*` is all. The machine's own (`localhost`, the address a connection was made to) are "
        "always among them. Unset: all once a key is needed, until then only the machine's own.",
    )

    retention: Annotated[Mapping[str, Days] | None, NoDecode, BeforeValidator(_retention)] = Field(
        None,
        description="For how many days projects keep evaluations, as `fraud=90,churn=365`; older ones are removed "
        "hourly, with their samples, and the audit log says so. A project that is not named keeps "
        "them for good. Comparisons and checks are stored.",
    )

    audit_days: Days | None = Field(
        None,
        description="For how many days the audit log is stored, in all projects; older entries are removed "
        "hourly. Unset: for good.",
    )

    database_url: DatabaseUrl | None = Field(
        None,
        description="Any Postgres 15 or newer, as `postgresql://user:password@host:5432/database`. "
        "Unset: an embedded Postgres, its files in `PREVAIL_DATA_DIR`.",
    )
    data_dir: Path = Field(
        Path("data"),
        description="Where the embedded Postgres keeps its files; relative to the folder of the start. "
        "When root starts the service in a folder closed to others, they lie under `/var/lib/prevail`, "
        "and the file `location` in here names the place.",
    )
    database_dir: DirectoryPath | None = Field(
        None,
        description="Folder of a Postgres whose files lie on this machine: writes are answered `507` while its file "
        "system has less space than `PREVAIL_MIN_FREE_BYTES`. The service sets it for its embedded one.",
    )
    min_free_bytes: int = Field(
        64 * 1024 * 1024,
        ge=0,
        description="Free space below which writes are answered `507`, where the service knows the folder of Postgres.",
    )
    database_wait_seconds: float = Field(
        30.0, ge=0, description="How long a start waits for a database that does not answer yet."
    )
    statement_timeout_seconds: float = Field(
        30.0, ge=0.001, description="A single SQL statement that takes longer is cancelled."
    )

    pool_size: int = Field(16, ge=1, le=1000, description="Database connections per worker, opened as they are needed.")
    admission_wait_seconds: float = Field(
        2.0,
        ge=0,
        description="How long a write waits while as many are under way in the worker as the pool has connections; "
        "then it is answered `503` with `Retry-After`.",
    )
    idempotency_seconds: int = Field(
        86_400,
        ge=60,
        description="How long an `Idempotency-Key` is remembered, with what was stored under it.",
    )
    max_body_bytes: int = Field(
        256 * 1024 * 1024, ge=1024, description="Largest request body in bytes; a larger one is answered `413`."
    )
    header_seconds: float = Field(
        10.0, gt=0, description="How long the first line and the headers of a request may take; after it `408`."
    )
    body_seconds: float = Field(
        20.0,
        gt=0,
        description="Longest pause while a request body is sent or an answer is read; after it `408`, or the "
        "connection is cut. A body also has to come at 4 KiB per second on average.",
    )
    connection_limit: int = Field(
        1000, ge=1, description="Open connections per worker; requests on further ones are answered `503`."
    )
    max_bodies_bytes: int = Field(
        512 * 1024 * 1024,
        ge=1024,
        description="Bytes of all large bodies that a worker has under way at once; further ones are answered `503`.",
    )
    compute_processes: int = Field(
        2, ge=1, le=64, description="Processes per worker for heavy arithmetic, so that it can be ended."
    )
    compute_wait_seconds: float = Field(
        10.0, ge=0, description="How long heavy arithmetic waits for a process before it is answered `503`."
    )
    compute_seconds: float = Field(
        120.0, gt=0, description="Heavy arithmetic that takes longer is ended and answered `504`."
    )
    compute_memory_bytes: int = Field(
        1536 * 1024 * 1024,
        ge=64 * 1024 * 1024,
        description="Memory that the heavy arithmetic of one request may take; more is answered `413`.",
    )

    data_prefixes: Annotated[Listed, AfterValidator(_prefixes)] = Field(
        (),
        description="Where the data may lie that requests name, such as `s3://bucket/preds,/srv/data`, separated by "
        "commas. Whoever may write can have everything below them read. Unset: nothing is read.",
    )
    data_s3_endpoint: str | None = Field(
        None,
        description="A store that speaks the protocol of S3, such as `http://minio:9000`. Unset: Amazon's. Credentials "
        "are found as those of Amazon always are (`AWS_ACCESS_KEY_ID`, …).",
    )
    data_memory_bytes: int = Field(
        1024 * 1024 * 1024,
        ge=1024 * 1024,
        description="Memory that the columns of data may take that requests name. Rows beyond memory are held by an "
        "engine that has half of it; what takes more goes into files.",
    )
    data_threads: int = Field(
        0,
        ge=0,
        le=1024,
        description="Threads of the engine that holds rows beyond memory; 0 is one for each processor, at most one for "
        "each 256 MiB of `PREVAIL_DATA_MEMORY_BYTES`.",
    )
    spill_dir: Folder | None = Field(
        None,
        description="Folder for what rows of data take beyond memory; files of a service that was killed are removed "
        "when another one starts. Unset: `prevail-UID` in the folder for temporary files (`TMPDIR`).",
    )
    spill_bytes: int = Field(
        64 * 1024 * 1024 * 1024,
        ge=64 * 1024 * 1024,
        description="Room that the rows of a job beyond memory may take in files; sorting them may take as much "
        "besides. More is answered `507`.",
    )
    spark: Annotated[str, AfterValidator(_cluster)] | None = Field(
        None,
        description="A cluster of Spark that holds and asks rows beyond memory in place of this machine: "
        "`sc://host:15002` by Spark Connect, or `local[2]` to try it out. Needs the extra `spark`. Unset: DuckDB in "
        "the process that reads them.",
    )
    spark_folder: Folder | None = Field(
        None,
        description="A folder that the service and the cluster of `PREVAIL_SPARK` see under the same path, by which "
        "rows go to it and come back. Unset: a temporary folder of this machine, which is right for `local[2]` only.",
    )
    data_seconds: float = Field(
        4 * 3600.0, gt=0, description="Reading data that a request names, and evaluating it, is ended after so long."
    )

    figure_seconds: float = Field(
        20.0,
        gt=0,
        description="A picture (SVG or PNG) that takes longer is given up: `504`. The extra `figures` draws.",
    )
    job_concurrency: int = Field(
        1,
        ge=0,
        le=64,
        description="Jobs that a worker works on at once, each with a compute process; 0: none, `prevail worker` does "
        "it.",
    )
    job_seconds: float = Field(3600.0, gt=0, description="Heavy arithmetic of a job that takes longer is ended.")
    job_attempts: int = Field(3, ge=1, description="How often a job may lose its worker before it is given up.")
    job_lost_seconds: float = Field(
        30.0, ge=1, description="After so long without a sign of life the worker of a job is taken for lost."
    )
    job_limit: int = Field(1000, ge=1, description="Jobs that may wait; one more is answered `503`.")
    job_limit_per_project: int = Field(
        100, ge=1, description="Jobs of a project that may wait; one more is answered `429`."
    )
    job_keep_hours: float = Field(
        24.0, gt=0, description="How long a job that has ended is remembered, with the result that it keeps."
    )

    webhook_private_addresses: bool = Field(
        default=False,
        description="Webhooks may lead to private networks and to this machine. Whoever may put webhooks can then send "
        "requests there.",
    )
    webhook_limit_per_project: int = Field(
        50, ge=1, description="Webhooks that a project may have; one more is answered `409`."
    )
    webhook_keep_days: int = Field(
        7, ge=1, le=365, description="How many days deliveries are stored after they have arrived or failed."
    )

    @field_validator("*")
    @classmethod
    def check_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse numbers with which clocks and the database would overflow, later and elsewhere."""
        most = _MOST_SECONDS if str(info.field_name).endswith(("_seconds", "_hours")) else _MOST
        if isinstance(value, int | float) and value > most:
            raise ValueError(f"expected at most {most}")
        return value


def describe_unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """A sentence for each variable of the environment that is meant for the service and that it does not know.

    One that was misspelt would otherwise be ignored, and its default be in force.
    """
    known = [name.upper() for name in Settings.model_fields]
    sentences = []
    for name in sorted(environment):
        own = name.upper().removeprefix(PREFIX)
        if own == name.upper() or own in known or name.upper() in _OTHERS_VARIABLES:
            continue
        if _SERVICE_LINK.match(f"{name}={environment[name]}"):
            continue
        near = get_close_matches(own, known, n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else "docs/reference/settings.md lists them all"
        sentences.append(f"{name}: there is no such setting; {hint}")
    return sentences
