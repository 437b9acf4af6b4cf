"""The page *Environments*: this console and its siblings, which real HTTP servers play."""

import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson
import pytest

from controlplane.core.environment_variables import Sibling
from controlplane.core.http.tests.callers import person, signed_in, with_token
from switches.environments.sibling_reader import SiblingReader, SiblingReading
from switches.environments.state import parse_state
from switches.environments.views import SILENT_AFTER, EnvironmentColumn, build_column, build_rows
from switches.tests.browsers import browser_as, engaged, overdue, page, text

TOKEN = "sg_staging_secret"
STAGING = {
    "environment": "staging",
    "release": "1.2",
    "read_at": "2026-11-29T02:00:00Z",
    "version": 7,
    "published_at": "2026-11-29T01:00:00Z",
    "degradation_level": 1,
    "attention": 3,
    "stopped": 2,
    "overdue": 1,
    "switches": [
        {
            "id": "feature:export",
            "allow_percent": 12.5,
            "reason": "tests of the new release",
            "engaged_at": "2026-11-29T01:00:00Z",
            "is_overdue": False,
        },
        {
            "id": "segment:finance",
            "allow_percent": 0,
            "reason": "<b>migration</b>",
            "engaged_at": "2026-11-28T01:00:00Z",
            "is_overdue": True,
        },
    ],
}


@contextmanager
def console(body=STAGING, status=200, release=None):
    """Serve the state of a sibling; yields it and the requests it gets. Wait for `release`."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            received.append((self.path, dict(self.headers)))
            if release is not None:
                release.wait(10)
            self.send_response(status)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else orjson.dumps(body))

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Sibling("staging", f"http://127.0.0.1:{server.server_address[1]}", TOKEN), received
    finally:
        server.shutdown()
        server.server_close()


def read_once(sibling):
    """The reading of one sibling after its first attempt."""
    reader = SiblingReader([sibling])
    (reading,) = reader.read()
    for _ in range(5):
        if reading.problem or reading.heard_at:
            break
        (reading,) = reader.read()
    return reading


@pytest.mark.django_db
def test_api_returns_what_is_stopped_and_a_console_understands_it():
    engaged("segment:finance")
    overdue("feature:export")

    answer = signed_in(person("viewer")).get("/environment/")
    state = parse_state(orjson.loads(answer.content))

    assert answer.status_code == 200
    assert [switch.id for switch in state.switches] == ["feature:export", "segment:finance"]
    assert [switch.condition for switch in state.switches] == ["overdue", "engaged"]
    assert (state.environment, state.stopped, state.overdue) == ("development", 2, 1)
    assert state.attention >= 1


@pytest.mark.django_db
def test_api_takes_the_scope_switches_read():
    owner = person("admin")

    assert with_token("switches:read", owner=owner).get("/environment/").status_code == 200
    assert with_token("slo:read", owner=owner).get("/environment/").status_code == 403


@pytest.mark.django_db
def test_page_shows_the_siblings_beside_this_console(settings):
    engaged("segment:finance")
    with console() as (sibling, received):
        settings.SIBLINGS = (sibling,)

        shown = browser_as("viewer").get("/environments/")

    said = text(page(shown))
    assert "Stopped switches in 2 of 2" in said
    assert "2 stopped Open staging" in said
    assert "feature:export differs Released Ramping 12.5 %" in said
    assert f'href="{sibling.url}/switches/feature/export/"' in page(shown)
    assert "<b>migration</b>" not in page(shown)
    assert TOKEN not in page(shown)
    (path, headers) = received[0]
    assert path == "/api/v1/environment/"
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert "Cookie" not in headers


@pytest.mark.django_db
def test_page_without_siblings_says_how_to_set_them():
    said = text(page(browser_as("viewer").get("/environments/")))

    assert "No other environment is set up." in said
    assert "Nothing is stopped here" in said


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        (STAGING, 401, "It refuses the token of SIBLING_TOKENS."),
        (STAGING, 403, "The token of SIBLING_TOKENS lacks the scope switches:read there."),
        (STAGING, 404, "There is no console of this release at its URL."),
        (STAGING, 302, "It responds with status 302."),
        (b"<html>", 200, "Its response is not the state of a console."),
        (b"[]", 200, "Its response is not the state of a console."),
        ({**STAGING, "stopped": -1}, 200, "Its response is not the state of a console."),
        ({**STAGING, "switches": [{}]}, 200, "Its response is not the state of a console."),
        (
            {**STAGING, "read_at": "0001-01-01T00:00:00+14:00"},
            200,
            "Its response is not the state of a console.",
        ),
        (b"[" * 1_100_000, 200, "Its response is not the state of a console."),
    ],
    ids=["401", "403", "404", "redirect", "page", "list", "negative", "switch", "date", "huge"],
)
def test_a_console_that_gives_no_state_is_unknown_with_the_cause(body, status, problem):
    with console(body, status) as (sibling, received):
        reading = read_once(sibling)

    assert (reading.state, reading.problem) == (None, problem)
    assert len(received) == 1


def test_a_console_that_is_not_there_is_unknown():
    with console() as (sibling, _received):
        pass

    assert read_once(sibling).problem == "The connection failed."


def test_a_silent_console_keeps_a_page_waiting_for_a_second_at_most():
    release = threading.Event()
    with console(release=release) as (sibling, _received):
        reader = SiblingReader([sibling])
        began = time.monotonic()
        (reading,) = reader.read()
        took = time.monotonic() - began
        release.set()

    assert (reading.state, reading.heard_at, reading.problem) == (None, None, "")
    assert 0.9 < took < 1.9


def test_a_sibling_that_was_last_heard_long_ago_is_unknown():
    now = parse_state(STAGING).read_at
    sibling = Sibling("staging", "https://staging.example.org", TOKEN)
    heard = SiblingReading(sibling, parse_state(STAGING), now, "The connection failed.")

    current = build_column(heard, now + SILENT_AFTER, now)
    silent = build_column(heard, now + SILENT_AFTER + timedelta(seconds=1), now)
    never = build_column(SiblingReading(sibling), now, now)

    assert current.state == parse_state(STAGING)
    assert (silent.state, silent.problem) == (None, "The connection failed.")
    assert silent.heard_at == now - SILENT_AFTER - timedelta(seconds=1)
    assert (never.state, never.problem) == (None, "Still waiting for its response.")


def test_a_switch_is_unknown_where_the_state_or_the_list_is_incomplete():
    whole = parse_state(STAGING)
    cut = parse_state({**STAGING, "switches": STAGING["switches"][:1]})
    columns = [
        EnvironmentColumn("a", "", whole, whole.read_at),
        EnvironmentColumn("b", "https://b", cut, cut.read_at),
        EnvironmentColumn("c", "https://c", None, None),
    ]

    rows = {row.id: row for row in build_rows(columns)}

    assert [cell.is_known for cell in rows["segment:finance"].cells] == [True, False, False]
    assert not rows["segment:finance"].differs


def test_a_console_under_another_name_is_called_out():
    state = parse_state({**STAGING, "environment": "production"})

    assert EnvironmentColumn("staging", "https://x", state, None).other_name == "production"
    assert EnvironmentColumn("Production", "https://x", state, None).other_name == ""


def test_share_of_a_sibling_is_short_whatever_it_sends():
    switch = {**STAGING["switches"][0], "allow_percent": "1e-999999"}

    (read,) = parse_state({**STAGING, "switches": [switch]}).switches

    assert len(read.share) < 10
