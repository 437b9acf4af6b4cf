"""Moments on the page of an SLO can be shown in UTC."""

import re

import pytest

from controlplane.core.clock import db_now
from switches.tests.browsers import browser_as, page

from . import factories
from .month_of_events import Incident, month, store_statuses

pytestmark = pytest.mark.django_db


def test_up_to_when_it_was_judged_is_told_in_utc_too():
    now = db_now()
    slo = factories.slo()
    month(slo, now, [Incident(30, 31, 0.05)], days=2)
    store_statuses([slo], now)

    html = page(browser_as("viewer").get("/slos/core-availability/"))

    assert re.search(r'Evaluated up to</p>\s*<p class="now__figure"><time [^>]*data-utc="', html)
