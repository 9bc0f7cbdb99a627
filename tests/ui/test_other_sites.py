"""Pages of other origins in a browser, against a service without keys: nothing that they send is stored."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import httpx
import pytest
from playwright.sync_api import Browser, Page
from pydantic import SecretStr

from app.settings import Settings
from tests.api.answers import evaluation
from tests.api.test_metrics import grown, read, wait_until
from tests.serving import Served
from tests.ui import browser as browsers

pytestmark = pytest.mark.slow

# By another name of the machine it is another site; by the same one, on another port, the same site.
SITES: Final = {"localhost": "cross-site", "127.0.0.1": "same-site"}
TYPES: Final = ("multipart/form-data", "text/plain", "application/x-www-form-urlencoded")
# What every page can do. The field `data` is a file.
SCRIPT: Final = """
window.filled = (fields) => Object.entries(fields).map(([name, value]) =>
    name === "data" ? [name, new File([value], "data.csv")] : [name, value]);
window.formOf = (fields) => {
    const form = new FormData();
    for (const [name, value] of filled(fields)) form.append(name, value);
    return form;
};
window.submitted = (address, type, fields) => {
    const form = Object.assign(document.createElement("form"), {action: address, method: "post", enctype: type});
    for (const [name, value] of filled(fields)) {
        const input = Object.assign(document.createElement("input"), {name});
        if (value instanceof File) {
            const chosen = new DataTransfer();
            chosen.items.add(value);
            input.type = "file";
            input.files = chosen.files;
        } else {
            input.value = value;
        }
        form.append(input);
    }
    document.body.append(form);
    form.submit();
};
window.fetched = async (address, fields, text, type, options) => {
    const content = type === null ? {body: formOf(fields)} : {body: text, headers: {"Content-Type": type}};
    try {
        return (await fetch(address, {method: "POST", ...content, ...options})).status;
    } catch (error) {
        return error.name;
    }
};
"""
SUBMIT: Final = "(given) => submitted(...given)"
FETCH: Final = "(given) => fetched(...given)"
BEACON: Final = "([address, fields]) => navigator.sendBeacon(address, formOf(fields))"
OPTIONS: Final = {"mode": "no-cors", "credentials": "include"}
EVALUATIONS: Final = "/v1/evaluations"
# Of what is posted there: the fields of a form, and JSON.
FIELDS: Final = {
    "evaluation": json.dumps(evaluation(input={"kind": "predictions"})),
    "data": "y_true,y_pred\n0,0\n1,1\n1,0\n",
}
JSON: Final = json.dumps(evaluation())
KEY: Final = json.dumps({"name": "theirs", "scopes": ["admin"]})
SENT: Final = {
    EVALUATIONS: (FIELDS, JSON),
    "/v1/keys": ({"key": KEY}, KEY),
    "/ui/sign-in": ({"key": "x"}, "{}"),
    "/ui/sign-out": ({}, "{}"),
}


class _Empty(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[int]:
    """The port of a server with an empty page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Empty) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers.opened() as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.add_init_script(SCRIPT)
    opened = context.new_page()
    # Long, since it is no test of how quick a machine is.
    opened.set_default_timeout(180_000)
    yield opened
    context.close()


@pytest.fixture(scope="module")
def service(database_url: str, elsewhere: int) -> Iterator[httpx.Client]:
    settings = Settings(database_url=SecretStr(database_url), cors_origins=(f"http://named.localhost:{elsewhere}",))
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


def stored(client: httpx.Client) -> int:
    return len(client.get("/v1/evaluations", params={"limit": 200}).json()["items"])


def address(client: httpx.Client, path: str) -> str:
    return str(client.base_url).rstrip("/") + path


def test_own_pages_and_named_ones_store(service: httpx.Client, elsewhere: int, page: Page) -> None:
    """What others send below is as it should be but for who sends it."""
    for place in (address(service, "/ui"), f"http://named.localhost:{elsewhere}/"):
        before = stored(service)
        page.goto(place)
        assert page.evaluate(FETCH, [address(service, EVALUATIONS), FIELDS, JSON, None, {}]) == 201
        assert page.evaluate(FETCH, [address(service, EVALUATIONS), FIELDS, JSON, "application/json", {}]) == 201
        assert stored(service) == before + 2, place


@pytest.mark.parametrize("name", SITES)
def test_no_other_page_stores(service: httpx.Client, elsewhere: int, page: Page, name: str) -> None:
    before, counted = stored(service), read(service)
    seen: set[tuple[int, str | None]] = set()
    sent = 0
    for path, (fields, text) in SENT.items():
        target = address(service, path)
        for kind in TYPES:
            page.goto(f"http://{name}:{elsewhere}/")
            with page.expect_navigation() as navigation:
                page.evaluate(SUBMIT, [target, kind, fields])
            answer = navigation.value
            assert answer is not None
            seen.add((answer.status, answer.request.all_headers().get("sec-fetch-site")))
            sent += 1
        page.goto(f"http://{name}:{elsewhere}/")
        for announced in (None, "text/plain"):
            # 0 is what a page sees of an answer that is none of its business.
            assert page.evaluate(FETCH, [target, fields, text, announced, OPTIONS]) == 0
            sent += 1
        # The browser asks first, and is told nothing that would let it send this.
        credentials = {"credentials": "include"}
        assert page.evaluate(FETCH, [target, fields, text, "application/json", credentials]) == "TypeError"
        assert page.evaluate(BEACON, [target, fields])
        sent += 1
    assert seen == {(403, SITES[name])}
    # All of it has reached the service, which refused it.
    wait_until(lambda: grown(counted, read(service), "refusals_total", code="cross_site") == sent)
    assert stored(service) == before
    assert service.get("/v1/keys").json()["items"] == []


def test_a_page_without_an_origin_stores_nothing(service: httpx.Client, elsewhere: int, page: Page) -> None:
    before, counted = stored(service), read(service)
    page.goto(f"http://localhost:{elsewhere}/")
    frame = """([script, call]) => new Promise((done) => {
        addEventListener("message", (event) => done(event.data));
        const frame = document.createElement("iframe");
        frame.sandbox = "allow-scripts";
        const told = "(told) => parent.postMessage(told, '*')";
        frame.srcdoc = `<script>${script}; ${call}.then(${told}, ${told})</script>`;
        document.body.append(frame);
        setTimeout(done, 60000, "no answer");
    })"""
    given = json.dumps([address(service, EVALUATIONS), FIELDS, JSON, None, OPTIONS])
    assert page.evaluate(frame, [SCRIPT, f"fetched(...{given})"]) == 0
    assert stored(service) == before
    assert grown(counted, read(service), "refusals_total", code="cross_site") == 1
