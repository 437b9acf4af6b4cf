"""Effect and blast radius in a real browser, updated by reports of instances."""

import re

import pytest
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.tests.browser import Desk
from controlplane.tests.installation import PASSWORD, running
from switches.models import Publication, Switch
from switches.tests.browsers import REASON, engaged
from switches.tests.instances import report_acknowledgment, report_checks, report_version

pytestmark = pytest.mark.e2e
FINANCE = "/switches/segment/finance/"


def version():
    return Publication.objects.get().version


def opacity(element):
    """Return the element's effective opacity: its own times that of its ancestors."""
    return element.evaluate(
        """element => {
          let left = 1;
          for (let at = element; at; at = at.parentElement) left *= getComputedStyle(at).opacity;
          return left;
        }"""
    )


def engage_finance(page):
    page.wait_for_load_state()  # Before that, no script listens for the key.
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Engage segment:finance").click()


@pytest.mark.smoke
def test_dialog_follows_the_change_until_everybody_applies_it(desks):
    for name in ("core/a1", "core/a2"):
        report_version(name, 0, db_now())
    page = desks.open_desk(person("operator")).open("/")

    engage_finance(page)
    panel = page.locator("#effect-dialog")
    expect(panel.locator(".effect__text")).to_have_text("Committed. Applied by 0 of 2 instances")
    done = page.get_by_role("button", name="Done")
    expect(done).to_be_focused()
    expect(done).to_have_accessible_description("Committed. Applied by 0 of 2 instances")

    report_version("core/a2", version(), db_now())
    expect(panel.locator(".effect__text")).to_have_text("Applied by 1 of 2 instances")
    expect(panel.locator(".stragglers")).to_contain_text("core/a1")
    expect(panel.locator(".stragglers")).not_to_contain_text("core/a2")

    for name in ("core/a1", "core/a2"):
        report_version(name, version(), db_now())
    report_acknowledgment("core/a2", Switch.objects.get(), 41)
    expect(panel.locator(".effect__text")).to_have_text("Applied by all 2 reporting instances")
    expect(panel).to_contain_text("41 ms")
    expect(page.get_by_role("button", name="Done")).to_be_focused()


def test_page_tells_of_a_straggler_that_comes_later(desks):
    kim = engaged("segment:finance")
    report_version("core/a1", version(), db_now())
    page = desks.open_desk(kim).open(FINANCE)
    panel = page.locator("#effect-page")
    expect(panel.locator(".effect__text")).to_have_text("Applied by the only reporting instance")

    report_version("core/a2", 0, db_now())

    # Once all instances apply it, the panel polls every five seconds.
    expect(panel.locator(".effect__text")).to_have_text("Applied by 1 of 2 instances", timeout=9000)
    expect(panel).to_contain_text("It may still let traffic through")


def test_panel_appears_on_a_page_that_was_open_before_the_first_engage(desks):
    kim = person("operator", "kim")
    page = desks.open_desk(kim).open(FINANCE)
    expect(page.locator("#effect-page")).to_have_count(0)

    engaged("segment:finance", by=kim)
    expect(page.locator("#effect-page")).to_contain_text("effect unknown")
    report_version("core/a1", version(), db_now())

    expect(page.locator("#effect-page")).to_contain_text("Applied by the only reporting instance")


def test_who_is_hit_stands_before_the_button_as_the_key_is_typed(desks):
    report_checks("core/a1", "segment:finance", "feature:beta", at=db_now(), per_second=10)
    engaged("feature:beta", reason="Ledger drifts since 01:00, INC-1")
    page = desks.open_desk(person("operator")).open("/")

    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).press_sequentially("finance")
    hit = page.get_by_role("group", name="Affected callers")
    expect(hit).to_contain_text("1 instance of 1 service checked segment:finance")
    expect(hit).to_contain_text("Ledger drifts since 01:00, INC-1")
    expect(page.get_by_label("Key", exact=True)).to_be_focused()
    button = page.get_by_role("button", name="Engage segment:finance")
    expect(button).to_have_accessible_description(
        re.compile("^1 instance of 1 service checked segment:finance .{1,50}$")
    )

    page.get_by_label("Key", exact=True).fill("nobody")
    expect(hit).to_contain_text("No checks of segment:nobody were reported")
    expect(hit).not_to_contain_text("INC-1")


@pytest.mark.parametrize(
    ("width", "height", "scope"),
    [(1280, 800, "segment"), (1280, 800, "global"), (1280, 640, "segment"), (390, 800, "segment")],
)
def test_who_is_hit_is_in_sight_above_the_button(desks, width, height, scope):
    for number in range(9):
        report_checks(
            f"s{number}/a1", "segment:finance", "feature:beta", at=db_now(), per_second=10
        )
    engaged("feature:beta", reason="Ledger drifts since 01:00, INC-1")
    page = desks.open_desk(person("operator"), viewport={"width": width, "height": height}).open(
        "/"
    )

    page.keyboard.press("e")
    page.get_by_label("Scope", exact=True).select_option(scope)
    if scope == "segment":
        page.get_by_label("Key", exact=True).fill("finance")
    other = page.get_by_role("group", name="Affected callers").get_by_text(
        "Ledger drifts since 01:00"
    )
    foot = page.locator("#dialog .form-foot")
    expect(foot).to_contain_text("Checked by 9 instances: ")
    expect(other).to_be_visible()

    assert other.bounding_box()["y"] + other.bounding_box()["height"] <= foot.bounding_box()["y"]


def test_dialog_announces_milestones_and_no_counts(desks):
    names = ("core/a1", "core/a2", "core/a3")
    for name in names:
        report_version(name, 0, db_now())
    page = desks.open_desk(person("operator")).open("/")
    engage_finance(page)
    status, announced = (
        page.locator("#effect-dialog-said"),
        page.locator("#dialog [data-announcer]"),
    )
    expect(status).to_contain_text("0 of 3")

    report_version("core/a1", version(), db_now())
    expect(announced).to_contain_text("Applied by 1 of 3 instances")
    report_version("core/a2", version(), db_now())
    expect(status).to_have_text("Applied by 2 of 3 instances")
    expect(announced).not_to_contain_text("2 of 3")
    for name in names:
        report_version(name, version(), db_now())
    expect(announced).to_contain_text("Applied by all 3 reporting instances")
    report_version("core/a4", 0, db_now())
    expect(announced).to_contain_text("Applied by 3 of 4 instances", timeout=9000)


def test_tab_that_nobody_looks_at_asks_for_no_effect(desks):
    kim = engaged("segment:finance")
    report_version("core/a1", 0, db_now())
    page = desks.open_desk(kim).open(FINANCE)
    status = page.locator("#effect-page-said")
    expect(status).to_contain_text("0 of 1")

    hide = "Object.defineProperty(document, 'hidden', {configurable: true, value: %s})"
    page.evaluate(hide % "true")
    page.wait_for_timeout(500)  # Requests that were under way when the page was hidden.
    requests_made = []
    page.on("request", lambda request: requests_made.append(request.url))
    page.wait_for_timeout(2500)
    assert not [url for url in requests_made if "/effect/" in url]

    report_version("core/a1", version(), db_now())
    page.evaluate(hide % "false")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(status).to_have_text("Applied by the only reporting instance", timeout=900)


def test_long_name_takes_three_lines_at_most(desks):
    kim = engaged("segment:finance")
    long_name = f"{'a-service-' * 12}/{'i' * 120}"
    report_version(long_name, 0, db_now())
    report_checks(long_name, "segment:finance", at=db_now(), per_second=10)
    page = desks.open_desk(kim, viewport={"width": 390, "height": 800}).open(FINANCE)
    page.get_by_text("Instances and tokens", exact=True).click()

    for where in (".stragglers b", ".callers tbody th .clamp"):
        for name in page.locator(where).all():
            lines = name.evaluate(
                "e => e.clientHeight / parseFloat(getComputedStyle(e).lineHeight)"
            )
            assert lines < 3.5, f"{where} takes {lines} lines"
            assert name.get_attribute("title") in {long_name, long_name.partition("/")[0]}


def test_panel_that_gets_no_answer_says_so(desks):
    report_version("core/a1", 0, db_now())
    desk = desks.open_desk(person("operator"))
    page = desk.open("/")
    engage_finance(page)
    panel = page.locator("#effect-dialog")
    expect(panel).to_contain_text("As of")

    desk.context.set_offline(True)
    expect(panel).to_contain_text("Not current since")
    expect(panel).to_have_class(re.compile("is-stale"))
    expect(page.locator("#dialog [data-announcer]")).to_contain_text("Not current since")
    for words in ("Not current since", "core/a1", "may still let traffic"):
        assert opacity(panel.get_by_text(words).first) == 1, f"{words} is pale"
    desk.context.set_offline(False)
    expect(panel).to_contain_text("As of")
    expect(page.locator("#dialog [data-announcer]")).to_contain_text("Current again")

    # The browser's own messages about being offline are not errors of the page.
    desk.complaints = [text for text in desk.complaints if "ERR_INTERNET" not in text]
    desk.complaints = [text for text in desk.complaints if "htmx:" not in text]


@pytest.mark.smoke
@pytest.mark.timeout(200)
def test_poll_that_says_what_it_applies_is_seen_on_the_screen(chromium, tmp_path):
    with running(tmp_path / "var") as installation:
        token = installation.token("switches:read")
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        desk = Desk(context, installation.url)
        with installation.client(token) as service:
            page = desk.open("/")
            page.get_by_label("User name").fill("admin")
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in", exact=True).click()
            page.get_by_role("heading", name="Nothing is engaged").wait_for()
            me = {"Switchgear-Instance": "core/a1"}
            before = service.get("/api/v1/snapshot", headers=me)
            assert before.status_code == 200, before.text

            engage_finance(page)
            panel = page.locator("#effect-dialog")
            expect(panel).to_contain_text("Applied by 0 of 1 instance")
            service.get("/api/v1/snapshot", headers=me).raise_for_status()  # Served, not applied.
            page.wait_for_timeout(1500)
            expect(panel).to_contain_text("Applied by 0 of 1 instance")

            applied = service.get("/api/v1/snapshot", headers=me).headers["ETag"].strip('"')
            service.get("/api/v1/snapshot", headers={**me, "Switchgear-Applied": applied})
            expect(panel).to_contain_text("Applied by the only reporting instance")
            expect(panel).to_contain_text("p99")
        context.close()
        assert desk.complaints == []
