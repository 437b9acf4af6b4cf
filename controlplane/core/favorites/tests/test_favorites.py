"""Favorites: star buttons, filters of the lists, the palette and the API."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from breakers.dead_letters.tests.heaps import heap
from breakers.tests.registered import dependency
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.favorites import services
from controlplane.core.favorites.models import Favorite
from controlplane.core.http.tests.callers import as_role, person, signed_in, with_token
from slo.tests import factories
from switches.tests.browsers import PART, browser, browser_as, engaged, page, released, text
from switches.tests.instances import report_checks

pytestmark = pytest.mark.django_db

FINANCE = "/favorites/switch/segment:finance"


@pytest.fixture
def letters(settings):
    with heap(settings) as found:
        yield found


@pytest.fixture
def everything(letters):
    """The key of a favorite of each kind, its path and the list that it is on."""
    engaged("segment:finance")
    engaged("segment:legal")
    dependency(db_now())
    dependency(db_now(), "core->synapse")
    factories.slo("checkout")
    factories.slo("search")
    letters.add(to="events")
    letters.add(to="mails")
    stream, other = letters.stream("events"), letters.stream("mails")
    return {
        "switch": ("segment:finance", "/", "row-segment-legal"),
        "dependency": ("core->oracle", "/breakers/", "core/synapse"),
        "slo": ("checkout", "/slos/", "/slos/search/"),
        "dead_letters": (str(stream), "/dead-letters/", f'id="stream-{other.pk}"'),
    }


@pytest.mark.parametrize("kind", ["switch", "dependency", "slo", "dead_letters"])
def test_starred_object_is_alone_in_the_filtered_list_and_first_in_the_palette(kind, everything):
    key, path, other = everything[kind]
    kim = browser_as("viewer")
    kim.post(f"/favorites/{kind}/{key}", {"starred": "1"})

    everybodys, own = page(kim.get(path)), page(kim.get(f"{path}?mine=favorites"))
    palette = page(kim.get("/find/part/"))

    assert 'title="Remove from favorites"' in everybodys
    assert other in everybodys
    assert own.count('class="star"') == 1
    assert other not in own
    assert palette.index('aria-label="Favorites"') < palette.index('aria-label="Action"')


def test_plain_form_stars_and_returns_to_its_page():
    kim = browser_as("viewer")

    response = kim.post(FINANCE, {"starred": "1"}, headers={"Referer": "http://testserver/?q=fin"})
    away = kim.post(FINANCE, {"starred": "0"}, headers={"Referer": "http://elsewhere.example/"})

    assert response.headers["Location"] == "http://testserver/?q=fin"
    assert away.headers["Location"] == "/switches/segment/finance/"
    assert not Favorite.objects.exists()


def test_htmx_gets_the_pressed_button():
    html = page(browser_as("viewer").post(FINANCE, {"starred": "1"}, headers=PART))

    assert 'aria-pressed="true"' in html
    assert "Favorite segment:finance" in text(html)


def test_favorites_of_others_are_not_shown():
    engaged("segment:finance")
    browser_as("operator").post(FINANCE, {"starred": "1"})

    html = page(browser_as("viewer").get("/?mine=favorites"))

    assert "row-segment-finance" not in html
    assert "None of your favorites match." in text(html)


@pytest.mark.parametrize("path", ["/favorites/switch/nothing", "/favorites/weather/rain"])
def test_what_does_not_exist_cannot_be_starred(path):
    response = browser_as("viewer").post(path, {"starred": "1"})

    assert response.status_code == 404
    assert not Favorite.objects.exists()


def test_matching_favorite_ranks_first_in_the_palette_and_is_listed_once():
    engaged("segment:finance")
    kim = browser(engaged("segment:finally"))
    kim.post(FINANCE, {"starred": "1"})

    html = page(kim.get("/find/part/?q=fin"))

    assert html.index("/switches/segment/finance/") < html.index("/switches/segment/finally/")
    assert html.count('href="/switches/segment/finance/"') == 1


def test_api_adds_lists_and_removes_favorites():
    kim, other = signed_in(person("viewer", "kim")), as_role("operator")

    added = kim.send("put", FINANCE)
    again = kim.send("put", FINANCE)
    listed, others = kim.get("/favorites/", {"kind": "switch"}), other.get("/favorites/")
    removed = kim.send("delete", FINANCE)

    assert added.json()["key"] == "segment:finance"
    assert again.json() == added.json()
    assert [one["key"] for one in listed.json()["results"]] == ["segment:finance"]
    assert others.json()["results"] == []
    assert removed.json() == {"removed": True}
    assert kim.send("delete", FINANCE).json() == {"removed": False}


def test_token_has_no_favorites():
    assert with_token("switches:read").get("/favorites/").status_code == 403


def test_number_of_favorites_is_limited():
    user, now = person("viewer", "kim"), db_now()
    Favorite.objects.bulk_create(
        Favorite(user=user, kind="switch", key=f"feature:a-{n}", created_at=now)
        for n in range(services.MAX_FAVORITES)
    )

    response = signed_in(user).send("put", FINANCE)

    assert response.status_code == 409
    assert "Remove one first." in response.json()["detail"]


@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_cannot_exceed_the_limit():
    user, now = person("viewer", "kim"), db_now()
    Favorite.objects.bulk_create(
        Favorite(user=user, kind="switch", key=f"feature:a-{n}", created_at=now)
        for n in range(services.MAX_FAVORITES - 1)
    )

    def star(key):
        try:
            services.add_favorite(user_id=user.pk, kind="switch", key=key, now=now)
        except Conflict:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(4) as threads:
        starred = list(threads.map(star, [f"segment:b-{n}" for n in range(4)]))

    assert starred.count(True) == 1
    assert Favorite.objects.count() == services.MAX_FAVORITES


@pytest.mark.parametrize("path", ["/favorites/switch/segment:a%00b", "/favorites/swi%00tch/a"])
def test_names_with_nul_do_not_exist(path):
    kim = signed_in(person("viewer", "kim"))

    assert kim.send("put", path).status_code == 404
    assert kim.send("delete", path).status_code == 404
    assert browser_as("viewer").post(path, {"starred": "0"}).status_code == 404


def test_favorite_slo_comes_first_in_its_list():
    factories.slo("checkout")
    factories.slo("search")
    kim = browser_as("viewer")
    kim.post("/favorites/slo/search", {"starred": "1"})

    html = page(kim.get("/slos/"))

    assert html.index("/slos/search/") < html.index("/slos/checkout/")


def test_favorite_stream_comes_first_in_the_inbox(letters):
    letters.add(to="events")
    letters.add(to="mails")
    mails, events = letters.stream("mails"), letters.stream("events")
    kim = browser_as("viewer")
    kim.post(f"/favorites/dead_letters/{mails}", {"starred": "1"})

    html = page(kim.get("/dead-letters/"))

    assert html.index(f'id="stream-{mails.pk}"') < html.index(f'id="stream-{events.pk}"')


def test_favorites_come_first_among_switches_of_one_state():
    kim = engaged("segment:finance")
    engaged("segment:legal")
    for key in ("feature:a", "feature:b"):
        engaged(key)
        released(key)
    report_checks("core/1", "feature:c", "feature:d", at=db_now(), per_second=5)
    for key in ("segment:legal", "feature:b", "feature:d"):
        browser(kim).post(f"/favorites/switch/{key}", {"starred": "1"})

    html = page(browser(kim).get("/"))

    rows = re.findall(r'<tr id="(?:row|checked)-([^"]+)"', html)
    assert rows == [
        *("segment-legal", "segment-finance"),
        *("feature-b", "feature-a"),
        *("feature-d", "feature-c"),
    ]
