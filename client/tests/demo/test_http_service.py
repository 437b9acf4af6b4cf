"""A service of the demo over real HTTP: its answers, its door for faults, and who may use it."""

import http.client
import json
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from demo.faults import Faults
from demo.http_calls import Unreachable, call
from demo.http_service import Body, FaultyService, ServiceResponse, run_service
from switchgear import SwitchEngaged


def answer_request(broken: Faults, body: Body) -> ServiceResponse:
    broken.strike()
    if "stop" in body:
        raise SwitchEngaged("feature:chat", "It is down for repairs")
    return ServiceResponse(200, {"heard": body.get("word")})


@pytest.fixture
def port() -> Iterator[int]:
    broken = Faults()
    with run_service(
        FaultyService({("POST", "/ask"): lambda body: answer_request(broken, body)}, broken)
    ) as port:
        yield port


def test_a_call_is_answered(port: int) -> None:
    assert call(port, "/ask", {"word": "yes"}, seconds=10) == (200, {"heard": "yes"})


def test_a_call_that_a_switch_stops_is_told_which_and_why(port: int) -> None:
    status, said = call(port, "/ask", {"stop": 1}, seconds=10)

    assert status == 503
    assert (said["switch"], said["reason"]) == ("feature:chat", "It is down for repairs")


def test_a_fault_breaks_calls_until_it_is_taken_out(port: int) -> None:
    put = call(port, "/faults", {"errors": 1.0}, seconds=10)
    while_broken, _ = call(port, "/ask", {}, seconds=10)
    call(port, "/faults", {}, seconds=10, method="DELETE")

    assert put[1]["errors"] == 1.0
    assert while_broken == 500
    assert call(port, "/ask", {}, seconds=10)[0] == 200


def test_a_service_that_is_down_gives_no_answer_but_can_be_mended(port: int) -> None:
    call(port, "/faults", {"down": True}, seconds=10)

    with pytest.raises(Unreachable):
        call(port, "/ask", {}, seconds=10)

    assert call(port, "/faults", {}, seconds=10)[0] == 200
    assert call(port, "/ask", {}, seconds=10)[0] == 200


def test_a_wrong_fault_is_refused_with_the_reason(port: int) -> None:
    status, said = call(port, "/faults", {"errors": 7}, seconds=10)

    assert status == 400
    assert "0 to 1" in said["error"]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain"])
def test_a_fault_that_is_not_sent_as_json_is_refused(port: int, kind: str) -> None:
    call(port, "/faults", {"errors": 1.0}, seconds=10)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/faults", b'{"errors": 0.5}', {"Content-Type": kind})

    answer = connection.getresponse()

    assert answer.status == 415
    assert "Content-Type: application/json" in json.loads(answer.read())["error"]
    assert call(port, "/faults", {}, seconds=10, method="GET")[1]["errors"] == 1.0


@pytest.mark.parametrize("sent", [b"{", b"[1]", b"\xff", b"[" * 60_000])
def test_a_body_that_is_no_object_is_refused(port: int, sent: bytes) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/ask", sent, {"Content-Type": "application/json"})

    assert connection.getresponse().status == 400


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"}]
)
def test_a_page_of_somebody_else_breaks_nothing(port: int, headers: dict[str, str]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/faults", json.dumps({"down": True}), headers)

    status = connection.getresponse().status

    assert status == 403
    assert call(port, "/ask", {}, seconds=10)[0] == 200


def test_what_is_not_there_is_not_found(port: int) -> None:
    assert call(port, "/nothing", {}, seconds=10)[0] == 404


def test_a_visitor_who_has_gone_is_not_told_of(
    port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    call(port, "/faults", {"delay_ms": 300}, seconds=10)
    visitor = socket.create_connection(("127.0.0.1", port))
    visitor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    visitor.sendall(b"POST /ask HTTP/1.1\r\nHost: localhost\r\n\r\n")
    time.sleep(0.1)
    visitor.close()

    status, _ = call(port, "/ask", {}, seconds=10)

    assert status == 200
    assert capfd.readouterr().err == ""
