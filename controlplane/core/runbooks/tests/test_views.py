"""The pages of runbooks."""

import re
from pathlib import Path

import pytest
from django.template.loader import render_to_string
from django.urls import resolve

from controlplane.core.clock import db_now
from controlplane.core.console_urls import DOCUMENTATION_PATH
from controlplane.core.http.tests.callers import MODEL_BACKEND, person
from controlplane.core.runbooks import library
from controlplane.core.runbooks.library import RUNBOOK_STATUS, RunbookStatus, StatusLine

pytestmark = pytest.mark.django_db
OURS = re.compile(r'<a href="(/[^"?#]*)[^"]*"')


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"), backend=MODEL_BACKEND)
    return client


@pytest.fixture
def shown(viewer):
    return lambda path: viewer.get(path).content.decode()


def test_every_runbook_is_listed_with_its_symptoms(shown):
    html = shown("/runbooks/")

    for one in library.list_runbooks():
        assert f'href="/runbooks/{one.slug}/"' in html
    assert "OutboxBacklog" in html


@pytest.mark.parametrize("slug", [one.slug for one in library.list_runbooks()])
def test_every_runbook_has_a_page_whose_links_lead_somewhere(shown, slug):
    html = shown(f"/runbooks/{slug}/")

    assert "<h2>Immediate actions" in html
    assert "<h2>Diagnose" in html
    assert "<h2>Recover" in html
    for path in OURS.findall(html):
        if path != DOCUMENTATION_PATH:
            resolve(path)


@pytest.mark.parametrize("slug", ["nothing", "README"])
def test_unknown_runbook_is_not_found(viewer, slug):
    assert viewer.get(f"/runbooks/{slug}/").status_code == 404


def test_nobody_reads_them_without_signing_in(client):
    answer = client.get("/runbooks/redis-down/")

    assert answer.status_code == 302
    assert "sign-in" in answer["Location"]


def test_what_apps_say_of_it_stands_above_a_runbook(shown):
    since = db_now()
    lines = [StatusLine("Redis <is> away", "bad", "/x/", since)]
    RUNBOOK_STATUS.register(added := RunbookStatus(lambda now: lines, slug="redis-down"))
    try:
        html = shown("/runbooks/redis-down/")
        other = shown("/runbooks/outbox-backlog/")
    finally:
        RUNBOOK_STATUS.unregister(added.name)

    assert "Current state" in html
    assert "Switch states unknown" not in html
    assert '<a href="/x/" dir="auto">Redis &lt;is&gt; away</a>' in html
    assert "Current state" not in other


def test_page_without_a_database_says_where_its_runbook_can_be_read(
    settings, django_assert_num_queries
):
    with django_assert_num_queries(0):
        html = render_to_string("503.html")

    (named,) = re.findall(r"less (docs/runbooks/[\w.-]+)", html)
    assert (settings.BASE_DIR / named).is_file()
    assert library.find(Path(named).stem) is not None
