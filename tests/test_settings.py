import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.settings import Settings, describe_unknown_variables, normalize_database_url
from scripts.generate_settings import TARGET, render
from tests.bank import each


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("postgres://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
        ("postgresql://u:p@h:5433/d", "postgresql+asyncpg://u:p@h:5433/d"),
        ("postgresql+psycopg://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
        ("postgresql+asyncpg://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
        ("postgresql://u:p%40%2F@h/d?sslmode=require", "postgresql+asyncpg://u:p%40%2F@h/d?ssl=require"),
        ("postgresql://u@/d?host=/run/postgresql", "postgresql+asyncpg://u@/d?host=%2Frun%2Fpostgresql"),
        ("postgresql:///d?host=/run/postgresql", "postgresql+asyncpg:///d?host=%2Frun%2Fpostgresql"),
        (" postgresql://u@[::1]:5432/d\n", "postgresql+asyncpg://u@[::1]:5432/d"),
    ],
)
def test_every_usual_url_becomes_the_drivers(given: str, expected: str) -> None:
    assert normalize_database_url(given) == expected
    assert normalize_database_url(expected) == expected


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://u:hunter2@h/d", "postgresql://"),
        ("u:hunter2@h/d", "no scheme"),
        ("postgresql://u:hunter2@h:port/d", "expected a URL"),
        ("postgresql://u:hunter2@h", "name of a database"),
        ("postgresql://u:hunter2@h/d?application_name=x", "application_name"),
    ],
)
def test_a_refused_url_is_explained_without_its_password(url: str, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(database_url=url)
    assert said in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_the_password_is_in_no_rendering() -> None:
    settings = Settings(database_url="postgresql://u:hunter2@h/d")
    for rendering in (repr(settings), str(settings), settings.model_dump_json(), repr(settings.model_dump())):
        assert "hunter2" not in rendering
    assert settings.database_url is not None
    assert "hunter2" in settings.database_url.get_secret_value()


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREVAIL_HOST", "::")
    monkeypatch.setenv("PREVAIL_PORT", "8123")
    monkeypatch.setenv("PREVAIL_DATA_DIR", "/srv/data")
    monkeypatch.setenv("PREVAIL_DATABASE_URL", "")
    settings = Settings()
    assert (settings.host, settings.port, settings.data_dir) == ("::", 8123, Path("/srv/data"))
    assert settings.database_url is None


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if name.endswith("_seconds")])
def test_no_time_is_longer_than_the_system_can_wait(name: str) -> None:
    with pytest.raises(ValidationError, match=f"{name}\\n.*at most 2073600"):
        Settings.model_validate({name: 2**31 // 1000 + 1})


def test_a_limit_of_statements_is_one() -> None:
    """Postgres takes none of its milliseconds for no limit."""
    with pytest.raises(ValidationError, match="statement_timeout_seconds"):
        Settings(statement_timeout_seconds=0.0005)


def test_defaults_stay_on_this_machine() -> None:
    settings = Settings()
    assert (settings.host, settings.port, settings.workers) == ("127.0.0.1", 8000, 1)
    assert settings.data_dir == Path("data")
    assert settings.max_body_bytes == 256 * 2**20


def test_settings_do_not_change_once_read() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(Settings(), "port", 1)  # noqa: B010 - mypy knows it too


def test_every_setting_is_described_and_the_page_is_fresh() -> None:
    assert all(field.description for field in Settings.model_fields.values())
    assert TARGET.read_text(encoding="utf-8") == render()


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("PREVAIL_PORTT", "did you mean PREVAIL_PORT?"),
        ("PREVAIL_WORKER", "did you mean PREVAIL_WORKERS?"),
        ("prevail_databaseurl", "did you mean PREVAIL_DATABASE_URL?"),
        ("PREVAIL_HTTP_PORT", "did you mean PREVAIL_PORT?"),
        ("PREVAIL_ZZZ", "docs/reference/settings.md lists them all"),
    ],
)
def test_a_variable_that_is_no_setting_is_named(variable: str, said: str) -> None:
    assert describe_unknown_variables({variable: "1"}) == [f"{variable}: there is no such setting; {said}"]


def test_every_setting_and_what_others_set_is_known() -> None:
    own = {f"PREVAIL_{name.upper()}": "x" for name in Settings.model_fields} | {"prevail_port": "1"}
    others = {
        "PREVAIL": "http://127.0.0.1:8000",
        "PREVAIL_PORTS": "8000-8009",
        "PREVAIL_MEMORY": "6g",
        "PREVAIL_TEST_DATABASE_URL": "x",
        "PREVAIL_URL": "http://127.0.0.1:8000",
        "PREVAIL_API_KEY": "x",
        "PREVAIL_RUN": "tumor-rf:7",
        "PREVAIL_SERVICE_HOST": "10.0.0.7",
        "PREVAIL_SERVICE_PORT_HTTP": "8000",
        "PREVAIL_PORT_8000_TCP_ADDR": "10.0.0.7",
        "PREVAIL_POSTGRES_PORT": "tcp://10.0.0.8:5432",
        "PREVAIL_POSTGRES_PORT_5432_TCP": "tcp://10.0.0.8:5432",
    }
    assert describe_unknown_variables(own | others) == []


def test_the_folder_of_the_database_has_to_be_there(tmp_path: Path) -> None:
    assert Settings(database_dir=tmp_path).database_dir == tmp_path
    with pytest.raises(ValidationError, match="directory"):
        Settings(database_dir=tmp_path / "gone")


def _in_words(name: str, value: float) -> str:
    if not name.endswith("bytes"):
        return f"{value:g} s" if name.endswith("seconds") else f"{value:g}"
    size, unit = (value / 2**30, "GiB") if value >= 2**30 else (value / 2**20, "MiB")
    return f"{size:g} {unit}"


def test_numbers_in_the_documentation_are_those_of_the_settings() -> None:
    """Whoever changes a default finds here what else says it."""
    page = (TARGET.parent / "operations.md").read_text(encoding="utf-8")
    defaults = Settings()
    rows = re.findall(r"^\|[^|]*\|([^|]*)\| `PREVAIL_(\w+)`", page, re.MULTILINE)
    assert len(rows) > 8
    for said, variable in rows:
        name = variable.lower()
        value = getattr(defaults, name)
        assert re.search(rf"(?<![\d.]){re.escape(_in_words(name, value))}\b", said), (variable, said, value)
    pool = defaults.pool_size + 1
    assert f"That is {defaults.workers * pool} with the defaults, and {4 * pool} with\n`PREVAIL_WORKERS=4`." in page


def test_for_how_many_days_projects_keep_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().retention is None
    monkeypatch.setenv("PREVAIL_RETENTION", " fraud=90, churn = 365,")
    assert Settings().retention == {"fraud": 90, "churn": 365}


@pytest.mark.parametrize(
    "text", ["fraud", "fraud=", "fraud=0", "fraud=-1", "Fraud=5", "a b=5", "fraud=1.5", "fraud=40000", "a=90,b=7,a=30"]
)
def test_what_is_no_retention_stops_the_start(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PREVAIL_RETENTION", text)
    with pytest.raises(ValidationError):
        Settings()


@pytest.mark.parametrize("text", ["often", "0/second", "100/second; 0/hour"])
def test_what_is_no_rate_stops_the_start(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PREVAIL_KEY_RATE", text)
    with pytest.raises(ValidationError, match="expected a rate"):
        Settings()


NUMBERS = [name for name, field in Settings.model_fields.items() if field.annotation in (int, float)]


@each("value", ["inf", "-inf", "nan", "1e400", "1e300", "9" * 30])
@each("name", NUMBERS)
def test_no_number_is_endless(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    with monkeypatch.context() as patched:
        patched.setenv(f"PREVAIL_{name.upper()}", value)
        with pytest.raises(ValidationError) as refused:
            Settings()
    assert [error["loc"] for error in refused.value.errors()] == [(name,)]


@pytest.mark.parametrize(
    "origin",
    [
        *("example.com", "https://example.com/", "https://Example.com", "http://example.com:80", "null", "https://"),
        *("https://example.com:443", "https://a b", "https://u@example.com", "*.example.com", "https://*.example.com"),
    ],
)
def test_what_is_no_origin_is_refused(monkeypatch: pytest.MonkeyPatch, origin: str) -> None:
    monkeypatch.setenv("PREVAIL_CORS_ORIGINS", f"https://board.example,{origin}")
    with pytest.raises(ValidationError, match=r"expected an origin such as https://board\.example"):
        Settings()


def test_origins(monkeypatch: pytest.MonkeyPatch) -> None:
    origins = ("*", "https://board.example", "http://localhost:3000", "http://[::1]:8080", "chrome-extension://abc")
    monkeypatch.setenv("PREVAIL_CORS_ORIGINS", ", ".join(origins))
    assert Settings().cors_origins == origins


@pytest.mark.parametrize(
    "host", ["https://x.example", "x.example:8000", "*x.example", "a.*.example", "X.example", "a b", ".x"]
)
def test_what_is_no_name_of_a_host_is_refused(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("PREVAIL_ALLOWED_HOSTS", host)
    with pytest.raises(ValidationError, match=r"expected a name such as prevail\.example"):
        Settings()


def test_names_of_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = ("*", "prevail", "my_host.example", "*.corp.example", "10.0.0.7", "fd00::7")
    monkeypatch.setenv("PREVAIL_ALLOWED_HOSTS", ",".join(hosts))
    assert Settings().allowed_hosts == hosts


@pytest.mark.parametrize("name", ["spill_dir", "spark_folder"])
def test_folders_that_are_written_to_can_be(name: str, tmp_path: Path) -> None:
    wanted = tmp_path / "not" / "yet"
    assert getattr(Settings.model_validate({name: wanted}), name) == wanted
    (tmp_path / "not").write_bytes(b"")
    with pytest.raises(ValidationError, match=f"{name}\n.*folder that can be written, .*/not is none"):
        Settings.model_validate({name: wanted})


def test_traces_need_what_sends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings(otel=True).otel
    monkeypatch.setattr("app.settings.distributions", lambda name: iter(()))  # noqa: ARG005
    assert not Settings().otel
    with pytest.raises(ValidationError, match=r"otel\n.*the extra otel, which is not installed"):
        Settings(otel=True)


def test_sums_of_sizes_are_numbers_for_the_system() -> None:
    """Limits of processes are made of three of them."""
    with pytest.raises(ValidationError, match=r"compute_memory_bytes\n.*at most"):
        Settings(compute_memory_bytes=2**62)
