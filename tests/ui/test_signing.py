"""With keys a page asks for one, keeps it in a cookie, and shows what that key may see."""

import re
from collections.abc import Iterator
from http.cookies import SimpleCookie

import httpx
import pytest
from pydantic import SecretStr

from app.domain.operations import KeyMade
from app.settings import Authentication, Settings
from tests.api.answers import create, evaluation
from tests.api.keys import bearer, make_key
from tests.serving import Served
from tests.ui.test_pages import check_page

OURS = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return Settings(database_url=SecretStr(database_url), authentication=Authentication.keys)


@pytest.fixture(scope="module")
def url(settings: Settings) -> Iterator[str]:
    with Served(settings) as found:
        yield found


@pytest.fixture(scope="module")
def reader(database_url: str) -> KeyMade:
    return make_key(database_url, "mine", "read")


@pytest.fixture(scope="module")
def run(database_url: str, url: str) -> str:
    """A run of the project of the reader."""
    writer = make_key(database_url, "mine", "write")
    with httpx.Client(base_url=url, headers=bearer(writer), timeout=60) as client:
        return str(create(client, evaluation(model="mine-only"))["id"])


@pytest.fixture
def browser(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=60) as client:
        yield client


def sign_in(client: httpx.Client, key: str, **fields: str) -> httpx.Response:
    return client.post("/ui/sign-in", data={"key": key, **fields}, headers=OURS)


def test_a_page_asks_for_a_key_and_is_shown_then(browser: httpx.Client, reader: KeyMade, run: str) -> None:
    path = f"/ui/evaluations/{run}?"
    asked = browser.get(path)
    page = check_page(asked, 401)
    assert asked.headers["www-authenticate"].startswith("Bearer")
    assert "mine-only" not in asked.text
    after = next(one["value"] for one in page.named("input") if one["name"] == "next") or ""
    reply = sign_in(browser, reader.key, next=after)
    assert (reply.status_code, reply.headers["location"]) == (303, f"../{after}")
    (cookie,) = SimpleCookie(reply.headers["set-cookie"].split(", prevail")[0]).values()
    assert cookie["httponly"]
    assert cookie["samesite"] == "lax"
    assert not cookie["path"]
    assert "mine-only" in check_page(browser.get(path)).text
    out = browser.post("/ui/sign-out", headers=OURS)
    assert out.status_code == 303
    # The next one who signs in here begins with the project of their own key.
    assert {one.partition("=")[0] for one in out.headers.get_list("set-cookie")} == {"prevail_key", "prevail_project"}
    check_page(browser.get(path), 401)


def test_the_address_of_a_refused_form_leads_to_the_pages(browser: httpx.Client) -> None:
    """Whoever mistyped a key and asks for the address again is asked for a key, and not told of methods."""
    assert sign_in(browser, "pv_mistyped").status_code == 401
    asked = browser.get("/ui/sign-in", follow_redirects=True)
    assert asked.url.path == "/ui"
    check_page(asked, 401)


def test_requests_to_copy_go_to_this_service_with_a_key(browser: httpx.Client, reader: KeyMade, url: str) -> None:
    sign_in(browser, reader.key)
    text = check_page(browser.get("/ui/gates")).text
    assert f"curl -s -X PUT {url}/v1/gates/promotion" in text
    assert "Bearer $PREVAIL_API_KEY" in text


def test_the_cookie_is_good_for_pages_only(browser: httpx.Client, reader: KeyMade, run: str) -> None:
    """What changes something takes no cookie, so that no other page can have it changed."""
    sign_in(browser, reader.key)
    assert browser.get(f"/ui/evaluations/{run}").status_code == 200
    cookie = {"Cookie": f"prevail_key={reader.key}"}
    assert browser.get(f"/v1/evaluations/{run}", headers=cookie).status_code == 401
    assert browser.delete(f"/v1/evaluations/{run}", headers=cookie).status_code == 401


def test_a_key_shows_its_project(database_url: str, browser: httpx.Client, run: str) -> None:
    other = make_key(database_url, "other", "read")
    sign_in(browser, other.key)
    check_page(browser.get(f"/ui/evaluations/{run}"), 404)
    assert "mine-only" not in browser.get("/ui").text
    named = sign_in(browser, other.key, project="mine")
    check_page(named, 403)
    admin = make_key(database_url, "other", "admin")
    assert sign_in(browser, admin.key, project="mine").status_code == 303
    assert "mine-only" in check_page(browser.get(f"/ui/evaluations/{run}")).text
    sign_in(browser, admin.key)
    check_page(browser.get(f"/ui/evaluations/{run}"), 404)


def test_project_and_key_stand_in_the_header_and_are_switched_there(
    database_url: str, browser: httpx.Client, reader: KeyMade, run: str
) -> None:
    """Another project needs no key again; without one the key's own is shown."""
    assert "<b>" not in browser.get("/ui").text.partition("</header>")[0]
    admin = make_key(database_url, "other", "admin", name="anna")
    sign_in(browser, admin.key)
    head = browser.get("/ui").text.partition("</header>")[0]
    assert "Project <b>other</b>, key <b><bdi>anna</bdi></b>" in head
    assert browser.post("/ui/sign-in", data={"project": "mine"}, headers=OURS).status_code == 303
    page = browser.get(f"/ui/evaluations/{run}").text
    assert "mine-only" in page
    assert "Project <b>mine</b>" in page
    assert "X-Prevail-Project: mine" in page
    assert "-H &#39;X-Prevail-Project: mine&#39;" in browser.get("/ui/gates").text.replace("'", "&#39;")
    assert browser.post("/ui/sign-in", data={"project": ""}, headers=OURS).status_code == 303
    check_page(browser.get(f"/ui/evaluations/{run}"), 404)
    sign_in(browser, reader.key)
    assert "Project <b>mine</b>" in browser.get("/ui").text
    check_page(browser.post("/ui/sign-in", data={"project": "other"}, headers=OURS), 403)


@pytest.mark.parametrize("key", ["", "pv_nonsense", "pv_" + "0" * 32 + "_" + "a" * 43, "a\r\nSet-Cookie: x=1"])
def test_a_key_that_is_none(browser: httpx.Client, key: str) -> None:
    reply = sign_in(browser, key)
    assert "The key is not good" in check_page(reply, 401).text
    assert "set-cookie" not in reply.headers


def test_a_browser_that_names_the_origin_only(browser: httpx.Client, reader: KeyMade, url: str) -> None:
    reply = browser.post("/ui/sign-in", data={"key": reader.key}, headers={"Origin": url})
    assert reply.status_code == 303


@pytest.mark.parametrize(
    "after",
    [
        "//elsewhere.example",
        "https://elsewhere.example",
        "/ui",
        "../v1/keys",
        "ui/../v1",
        "ui\r\nX: 1",
        "ui/%2e%2e/v1/keys",
        "ui/.%2E/v1/keys",
        "ui/a%2f%2e%2e%2f..%2f..%2fv1",
        "ui/./..",
        "%75i/../..",
        "uix",
    ],
)
def test_after_signing_in_there_is_a_page_of_ours(browser: httpx.Client, reader: KeyMade, after: str) -> None:
    assert sign_in(browser, reader.key, next=after).headers["location"] == "../ui"


@pytest.mark.parametrize(
    ("after", "led"),
    [
        ("ui/%252e%252e/v1", "../ui/%252e%252e/v1"),
        ("ui/\\..\\..\\v1", "../ui/%5C..%5C..%5Cv1"),
        ("ui?x=%2e%2e/%2e%2e&y=//z", "../ui?x=%2e%2e/%2e%2e&y=//z"),
        ("ui/a b/ü?x=\r\ny", "../ui/a%20b/%C3%BC?x=%0D%0Ay"),
    ],
)
def test_what_is_written_again_stays_below(browser: httpx.Client, reader: KeyMade, after: str, led: str) -> None:
    assert sign_in(browser, reader.key, next=after).headers["location"] == led


def test_forms_have_a_size(browser: httpx.Client, reader: KeyMade) -> None:
    assert sign_in(browser, reader.key, next="u" * 9000).status_code == 403
    reply = browser.post("/ui/sign-in", json={"key": reader.key}, headers=OURS)
    assert reply.status_code == 403


def test_files_that_pages_load_need_no_key(browser: httpx.Client) -> None:
    page = browser.get("/ui").text
    for name in re.findall(r'(?:src|href)="(ui/[^"]+\?v=\w+)"', page):
        reply = browser.get(f"/{name}")
        assert reply.status_code == 200
        assert "immutable" in reply.headers["cache-control"]
