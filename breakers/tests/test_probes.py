"""Tests of probes: allowed targets, results, and when a service is away."""

import socket
import threading
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakers import attention
from breakers.models import Probe, Service
from breakers.policies.addresses import ProbeTarget, parse_target
from breakers.probes import prober, services
from breakers.probes.services import probe_due_services
from breakers.tests.fleet import NOW, SECOND, list_outbox_messages, reachable, service
from controlplane.core.audit.models import AuditEntry
from controlplane.core.egress_guard.allowed_networks import UrlRefused
from controlplane.core.http.tests.callers import at_once
from controlplane.core.outbox import renderer

LOCAL = ("127.0.0.0/8",)
TURN = 10 * SECOND


@contextmanager
def listening(answers=True):
    """A port that takes connections; with `answers` it closes them, else it just keeps them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def web(status=200, headers=None):
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            received.append((self.path, self.headers["Host"]))
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1], received
    finally:
        server.shutdown()
        server.server_close()


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def ask(url, resolver=None):
    more = {"resolver": resolver} if resolver else {}
    return prober.probe_all({"it": url}, **more)["it"]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/",
        "tcp://host",
        "tcp://host:6379/path",
        "https://user:secret@host/",
        "https://",
        "https://ho st/",
        "http://host:99999/",
        "file:///etc/passwd",
        "https://host/" + "x" * 500,
    ],
)
def test_what_is_no_address_of_a_probe_is_refused(url):
    with pytest.raises(ValueError):  # noqa: PT011
        parse_target(url)


def test_a_url_is_taken_apart():
    assert parse_target("tcp://redis:6379") == ProbeTarget("tcp", "redis", 6379)
    assert parse_target("https://api.example.com/up?deep=1") == ProbeTarget(
        "https", "api.example.com", 443, "/up?deep=1"
    )


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.7", "169.254.169.254", "::1", "::ffff:10.0.0.7", "fd00::1"]
)
def test_the_inside_of_the_house_is_not_asked_unless_it_was_allowed(settings, address):
    settings.PROBE_ALLOW = ()
    settings.WEBHOOK_ALLOW = ("0.0.0.0/0", "::/0")
    target = ProbeTarget("tcp", "inside.example", 80)

    with pytest.raises(UrlRefused, match="PROBE_ALLOW"):
        prober.resolve_address(target, seconds=1, resolver=lambda *_: ["93.184.215.14", address])


def test_an_allowed_network_is_asked(settings):
    settings.PROBE_ALLOW = ("10.0.0.0/8",)
    target = ProbeTarget("tcp", "redis", 6379)

    assert (
        str(prober.resolve_address(target, seconds=1, resolver=lambda *_: ["10.0.0.7"]))
        == "10.0.0.7"
    )


def test_a_port_that_takes_connections_answers(settings):
    settings.PROBE_ALLOW = LOCAL
    with listening() as url:
        assert ask(url).answered


def test_a_port_that_nobody_listens_at_does_not(settings):
    settings.PROBE_ALLOW = LOCAL

    result = ask(f"tcp://127.0.0.1:{closed_port()}")

    assert not result.answered
    assert "connection failed" in result.error


@pytest.mark.parametrize(("status", "answered"), [(200, True), (404, True), (500, False)])
def test_any_answer_over_http_counts_but_a_broken_one(settings, status, answered):
    settings.PROBE_ALLOW = LOCAL
    with web(status) as (port, seen):
        result = ask(f"http://oracle.test:{port}/up?deep=1", lambda *_: ["127.0.0.1"])

    assert result.answered is answered
    assert seen == [("/up?deep=1", f"oracle.test:{port}")]


def test_a_redirect_is_not_followed(settings):
    settings.PROBE_ALLOW = LOCAL
    with web() as (inner, seen), web(302, {"Location": f"http://127.0.0.1:{inner}/"}) as (port, _):
        assert ask(f"http://127.0.0.1:{port}/").answered

    assert seen == []


def test_each_has_two_seconds():
    assert prober.LOOK_UP_SECONDS < prober.TIMEOUT_SECONDS == 2.0


def test_what_hangs_is_given_up_in_time_beside_the_others(settings, monkeypatch):
    settings.PROBE_ALLOW = LOCAL
    monkeypatch.setattr(prober, "TIMEOUT_SECONDS", 0.5)
    with listening() as hangs, listening() as there:
        urls = {f"hangs-{n}": hangs.replace("tcp", "http") for n in range(12)}
        results = prober.probe_all({**urls, "there": there})

    assert results.pop("there").answered
    assert {one.error for one in results.values()} == {"no response within 0.5 s"}
    assert all(450 < one.took_ms < 2000 for one in results.values())


def test_names_that_hang_keep_nobody_else_waiting(settings, monkeypatch):
    settings.PROBE_ALLOW = LOCAL
    monkeypatch.setattr(prober, "LOOK_UP_SECONDS", 0.4)
    done = threading.Event()

    def resolver(host, _port):
        if host.startswith("hangs"):
            done.wait(10)
        return ["127.0.0.1"]

    with web() as (port, _), listening() as literal:
        urls = {f"hangs-{n}": f"http://hangs-{n}.test:{port}/" for n in range(12)}
        there = {"named": f"http://there.test:{port}/", "literal": literal}
        results = prober.probe_all({**urls, **there}, resolver=resolver)
    done.set()

    assert results.pop("named").answered
    assert results.pop("literal").answered
    assert {one.error.partition(" ")[2] for one in results.values()} == {
        "could not be resolved within 0.4 s"
    }


def test_an_address_that_is_written_out_is_never_looked_up(settings):
    settings.PROBE_ALLOW = LOCAL
    requests = []
    with listening() as url:
        assert ask(url, lambda *names: requests.append(names)).answered

    assert requests == []


@given(st.lists(st.booleans(), max_size=40))
def test_away_is_three_failures_in_a_row_and_back_is_one_answer(answers):
    standing = services.ProbeState()
    for place, answered in enumerate(answers):
        before, standing = standing, services.next_state(standing, answered, NOW + place * SECOND)

        last = answers[max(0, place - 2) : place + 1]
        if answered:
            assert not standing.is_away
        elif len(last) == 3 and not any(last):
            assert standing.is_away
        else:
            assert standing.is_away == before.is_away
        if standing.is_away != before.is_away:
            assert standing.since == NOW + place * SECOND


@pytest.mark.django_db
def test_a_service_that_falls_silent_is_told_once_and_when_it_is_back(settings):
    settings.PROBE_ALLOW = LOCAL
    reachable(settings)
    port = closed_port()
    service("redis", name="Redis", level=2, probe_url=f"tcp://127.0.0.1:{port}", loses=["Events"])

    changes = [probe_due_services(NOW + n * TURN) for n in range(5)]
    with socket.create_server(("127.0.0.1", port)):
        changes.append(probe_due_services(NOW + 5 * TURN))

    assert changes == [0, 0, 1, 0, 0, 1]
    (away,) = list_outbox_messages("probe.away")
    assert away.severity == "critical"
    assert renderer.render(away.event, away.payload).title == "Redis does not respond"
    assert len(list_outbox_messages("probe.back")) == 1
    probe = Probe.objects.get()
    assert (probe.is_away, probe.failures, probe.error) == (False, 0, "")
    actions = AuditEntry.objects.filter(target="service:redis").order_by("id")
    assert [one.action for one in actions] == ["service.away", "service.back"]


@pytest.mark.django_db
def test_a_probe_is_asked_every_ten_seconds_and_by_one_at_a_time(settings):
    settings.PROBE_ALLOW = LOCAL
    with web() as (port, seen):
        service("oracle", probe_url=f"http://127.0.0.1:{port}/")
        probe_due_services(NOW)
        probe_due_services(NOW + SECOND)
        probe_due_services(NOW + TURN)
        Probe.objects.update(lease_until=NOW + 60 * SECOND)
        probe_due_services(NOW + 2 * TURN)
        probe_due_services(NOW + 6 * TURN)

    assert len(seen) == 3


@pytest.mark.django_db
def test_no_more_are_taken_at_once_than_may_be(settings, monkeypatch, believed_empty):
    settings.PROBE_ALLOW = LOCAL
    monkeypatch.setattr(services, "MAX_AT_ONCE", 2)
    with listening() as url:
        service("gone", probe_url=url)
        probe_due_services(NOW)
        believed_empty(Probe)
        believed_empty(Service)
        for slug in ("mail", "pay", "search"):
            service(slug, probe_url=url)
        counted = []
        for _ in range(3):
            probe_due_services(NOW)
            counted.append(Probe.objects.filter(checked_at=NOW).count())

    assert counted == [2, 3, 3]


@pytest.mark.django_db
def test_what_may_not_be_asked_is_not_away_and_says_why(settings):
    settings.PROBE_ALLOW = ()
    reachable(settings)
    service("redis", level=2, probe_url="tcp://10.0.0.7:6379")

    changes = [probe_due_services(NOW + n * TURN) for n in range(5)]

    probe = Probe.objects.get()
    assert changes == [0] * 5
    assert (probe.is_away, probe.since) == (False, None)
    assert "PROBE_ALLOW" in probe.error
    (waits,) = attention.list_away_probes(NOW)
    assert (waits.severity, waits.title) == ("info", "redis is not probed")


@pytest.mark.django_db
def test_a_service_that_is_not_to_be_asked_any_more_has_no_probe(settings):
    settings.PROBE_ALLOW = LOCAL
    service("redis", probe_url="tcp://127.0.0.1:1")
    for number in range(3):
        probe_due_services(NOW + number * TURN)
    Service.objects.update(probe_url="")

    probe_due_services(NOW + timedelta(minutes=1))

    assert not Probe.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_several_turns_at_once_ask_once(settings):
    settings.PROBE_ALLOW = LOCAL
    with web() as (port, seen):
        service("oracle", probe_url=f"http://127.0.0.1:{port}/")
        at_once(*[lambda: probe_due_services(NOW)] * 4)

    assert len(seen) == 1
    assert Probe.objects.get().checked_at == NOW
