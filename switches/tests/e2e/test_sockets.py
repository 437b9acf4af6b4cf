"""Live pages of a real installation, updated by the socket."""

import time

import pytest
from playwright.sync_api import expect

from controlplane.tests.installation import PASSWORD, running

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
REASON = "provider outage, 5xx on completions since 02:10"
CALM_SECONDS = 8


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    with running(tmp_path_factory.mktemp("live") / "var") as one:
        yield one


@pytest.fixture
def client(installation):
    with installation.client(installation.token("switches:read", "switches:write")) as one:
        yield one


@pytest.fixture
def page(chromium, installation):
    """Return the switchboard of a signed-in person, with its socket open."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(15_000)
    opened = context.new_page()
    complaints = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(f"{installation.url}/sign-in/")
    opened.get_by_label("User name").fill("admin")
    opened.get_by_label("Password", exact=True).fill(PASSWORD)
    with opened.expect_websocket() as socket:
        opened.keyboard.press("Enter")
    socket.value.wait_for_event("framereceived")
    yield opened
    context.close()
    assert complaints == []


def engage(client, key):
    body = {"reason": REASON, "expires_in": "24h"}
    assert client.post(f"/api/v1/switches/segment/{key}/engage", json=body).status_code == 200


def row(page, key):
    return page.locator(f"tr[data-switch='segment:{key}']")


def test_change_appears_by_itself_and_a_calm_page_hardly_asks(page, client):
    requests_made = []
    page.wait_for_timeout(3_000)  # The first notice makes the page fetch everything once.
    page.on("request", lambda request: requests_made.append(request.url))

    # A late start of a component is a change too, which polls follow for half a minute.
    for _ in range(6):
        requests_made.clear()
        page.wait_for_timeout(CALM_SECONDS * 1000)
        if len(requests_made) <= 1:
            break
    calm = list(requests_made)
    engage(client, "told")

    expect(row(page, "told")).to_be_visible(timeout=2_000)
    assert len(calm) <= 1, calm
    expect(page.locator("#paused")).to_be_hidden()


def test_without_redis_the_page_says_so_and_follows_all_the_same(page, client, installation):
    paused = page.locator("#paused")

    with installation.suspended("redis-server"):
        expect(paused).to_contain_text("Live updates paused since")
        engage(client, "meanwhile")
        expect(row(page, "meanwhile")).to_be_visible(timeout=5_000)

    expect(paused).to_be_hidden()
    began = time.monotonic()
    engage(client, "afterwards")
    expect(row(page, "afterwards")).to_be_visible(timeout=5_000)
    assert time.monotonic() - began < 3


def test_signing_out_elsewhere_leads_to_the_sign_in(page, installation):
    # The same session, in another tab.
    other = page.context.new_page()
    other.goto(installation.url)
    other.locator("[data-menu] summary").click()

    other.get_by_role("button", name="Sign out").click()

    expect(page).to_have_url(f"{installation.url}/sign-in/?next=%2F")
