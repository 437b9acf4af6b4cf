"""A browser filters the switchboard by the switches that its user engaged."""

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from switches.models import Episode
from switches.tests.browsers import engaged

pytestmark = pytest.mark.e2e
PHONE = {"viewport": {"width": 320, "height": 568}, "is_mobile": True, "has_touch": True}


@pytest.mark.parametrize("options", [{}, PHONE])
def test_choosing_engaged_by_me_leaves_only_the_users_switches(desks, options):
    kim = engaged("segment:finance")
    engaged("segment:legal", by=person("operator", "olu"))
    Episode.objects.filter(switch="segment:finance").update(broke_glass={"rule": "one of two"})
    page = desks.open_desk(kim, **options).open("/")
    expect(page.locator("[data-switch]")).to_have_count(2)

    own = page.get_by_label("Filter by favorites or your own")
    own.select_option("Engaged or changed by me")

    expect(page.locator("[data-switch]")).to_have_count(1)
    expect(page.locator("[data-switch='segment:finance']")).to_contain_text("Break-glass used")
    assert "mine=1" in page.url
    width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]
