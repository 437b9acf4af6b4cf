"""The probe port of processes without a web server."""

import http.client
import json
import re
import threading
import time

import pytest

from controlplane.core.liveness import Crew, Loop
from controlplane.processes import health_server
from controlplane.tests.installation import free_port

pytestmark = pytest.mark.django_db(transaction=True)


def request_probe(port, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def start_server(loop, crew=None, *, needs_redis=True):
    port = free_port()
    health_server.serve_probes(port, loop=loop, crew=crew, needs_redis=needs_redis)
    return port


def test_a_process_that_works_is_started_live_and_ready():
    port = start_server(Loop(may_rest_seconds=60))

    for path in ("/health/startup", "/health/live", "/health/ready", "/health/live/"):
        assert request_probe(port, path)[0] == 200, path
    assert json.loads(request_probe(port, "/health/ready")[1])["checks"] == {
        "database": "healthy",
        "redis": "healthy",
    }


def test_a_loop_that_rests_too_long_is_not_live_until_it_turns_again():
    loop = Loop(may_rest_seconds=0.2)
    port = start_server(loop)
    time.sleep(0.4)

    assert request_probe(port, "/health/live")[0] == 503
    loop = Loop(may_rest_seconds=60)
    loop.record_turn()
    assert request_probe(start_server(loop), "/health/live")[0] == 200


def test_a_crew_hangs_only_when_every_thread_is_late():
    crew = Crew(2, task_may_take_seconds=0.1)
    crew.begins("a")
    time.sleep(0.2)
    assert not crew.hangs()

    crew.begins("b")
    assert not crew.hangs()
    time.sleep(0.2)
    assert crew.hangs()
    port = start_server(Loop(may_rest_seconds=60), crew)
    assert request_probe(port, "/health/live")[0] == 503

    crew.ends("a")
    crew.ends("never begun")
    assert request_probe(port, "/health/live")[0] == 200


def test_redis_away_matters_only_to_who_needs_it(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    loop = Loop(may_rest_seconds=60)

    status, document = request_probe(start_server(loop), "/health/ready")
    assert (status, json.loads(document)["checks"]["redis"]) == (503, "unhealthy")
    assert request_probe(start_server(loop, needs_redis=False), "/health/ready")[0] == 200


def test_metrics_tell_of_the_loop_and_of_every_queue(settings):
    port = start_server(Loop(may_rest_seconds=60))

    text = request_probe(port, "/metrics")[1].decode()
    (rested,) = re.findall(r"^switchgear_loop_rested_seconds (\S+)$", text, re.MULTILINE)
    assert 0 < float(rested) < 60
    assert 'switchgear_worker_queue_depth{queue="ramps"}' in text
    assert "switchgear_redis_up 1.0" in text
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    text = request_probe(port, "/metrics")[1].decode()
    assert "switchgear_redis_up 0.0" in text
    assert "queue_depth" not in text


def test_what_is_asked_wrongly_is_answered_too():
    port = start_server(Loop(may_rest_seconds=60))

    assert request_probe(port, "/")[0] == 404
    assert request_probe(port, "/health/live", "POST")[0] == 501
    assert request_probe(port, "/health/live", "HEAD") == (200, b"")


def test_a_port_that_somebody_has_ends_the_process(capsys):
    port = start_server(Loop(may_rest_seconds=60))

    with pytest.raises(SystemExit) as ended:
        health_server.serve_probes(port, loop=Loop(may_rest_seconds=60), needs_redis=True)

    assert ended.value.code == 2
    assert f"HEALTH_PORT: {port}" in capsys.readouterr().err


def test_without_a_port_nobody_listens():
    before = threading.active_count()

    health_server.serve_probes(0, loop=Loop(may_rest_seconds=60), needs_redis=True)

    assert threading.active_count() == before
