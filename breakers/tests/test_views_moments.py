"""Tests that all times on breaker pages are also available in UTC."""

import re

import pytest

from breakers.tests.house import dependency
from controlplane.core.clock import db_now
from switches.tests.browsers import browser_as, page

pytestmark = pytest.mark.django_db
PATH = "/breakers/core/oracle/"


def test_until_of_an_override_is_told_in_utc_too():
    dependency("core->oracle", db_now())

    html = page(browser_as("operator").get(f"{PATH}override/"))

    assert len(re.findall(r"<small>until <time [^>]*data-utc=", html)) >= 3
    assert not re.search(r"until \d", html)


def test_hours_of_the_day_are_told_in_utc_too():
    dependency("core->oracle", db_now())

    html = page(browser_as("viewer").get(PATH))

    hours = re.search(r'class="strip__hours[^>]*>(.*?)</p>', html, re.DOTALL)
    assert hours
    assert re.search(r'data-utc="\d\d:\d\d UTC"', hours[1])
    assert not re.search(r"<span>\d", hours[1])
