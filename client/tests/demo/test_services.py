"""Core, oracle and synapse together, over real HTTP, with a console in memory."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode

import pytest

from breakers.policies.configuration import FILES, read_files
from demo import world
from demo.core import Core
from demo.faults import Fault, Faults
from demo.http_calls import call
from demo.http_service import FaultyService, run_service
from demo.oracle import Oracle
from demo.page import Pages
from demo.prepare import CONFIG
from demo.service_calls import ServiceCalls
from demo.synapse import Synapse, UnreadableAmount
from switchgear import Switchgear
from switchgear.dlq import Message
from switchgear.testing import Console, no_wait

MEMBER, OTHER = "u002", "u003"


@dataclass
class Written:
    """Stands for Redis: keeps what core writes."""

    events: list[dict[Any, Any]] = field(default_factory=list)

    def xadd(self, name: str, fields: dict[Any, Any], *, maxlen: int) -> None:
        assert name == world.EVENTS
        self.events.append(fields)


class World:
    """The three services, up, each with a client of its own."""

    def __init__(self, stack: ExitStack) -> None:
        self.console = Console()
        self.gears: dict[str, Switchgear] = {}
        self.faults = {name: Faults() for name in world.SERVICES}
        self.stream = Written()
        for name in world.SERVICES:
            self.gears[name] = stack.enter_context(self.console.client(service=name))
        oracle = Oracle(self.gears["oracle"], self.faults["oracle"])
        self.synapse = Synapse(self.gears["synapse"], self.faults["synapse"])
        self.ports = {
            "oracle": self._serve(stack, "oracle", {("POST", "/answer"): oracle.answer}),
            "synapse": self._serve(stack, "synapse", {("POST", "/lookup"): self.synapse.lookup}),
        }
        self.calls = ServiceCalls(self.gears["core"], self.ports)
        core = Core(self.gears["core"], self.faults["core"], self.calls, self.stream)
        policies = tuple(self.calls.policies.values())
        pages = Pages(self.gears["core"], self.ports, "http://console.example/", policies)
        routes = {
            ("POST", "/ask"): core.ask,
            ("GET", "/switches"): core.show_switches,
            ("GET", "/"): pages.show,
            ("GET", "/page.css"): pages.show_style,
            ("POST", "/"): pages.change,
        }
        self.ports["core"] = self._serve(stack, "core", routes)

    def _serve(self, stack: ExitStack, name: str, routes: dict[Any, Any]) -> int:
        return stack.enter_context(
            run_service(FaultyService(routes, self.faults[name]), poll_seconds=0.01)
        )

    def ask(self, **question: str) -> tuple[int, dict[str, Any]]:
        body = {"user": MEMBER, "segment": "hr", "intent": world.NL2SQL, **question}
        return call(self.ports["core"], "/ask", body, seconds=20)

    def counted(self, service: str, sli: str) -> tuple[int, int]:
        return self.gears[service].sli(sli).get_counts()


@pytest.fixture
def three() -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack)


def test_nothing_engaged_answers_all(three: World) -> None:
    assert three.ask()[1]["retrieval"] == "v2"
    assert three.ask(user=OTHER)[1]["retrieval"] == "v1"
    assert "terms" in three.ask(intent=world.ONTOLOGY)[1]
    assert three.counted("core", "core-availability") == (3, 3)
    assert three.counted("oracle", "oracle-answers") == (2, 2)


def test_an_engaged_feature_refuses_its_questions_and_counts_none_of_them(three: World) -> None:
    three.console.engage("feature:nl2sql", reason="Wrong totals in the answers")

    status, body = three.ask()

    assert status == 503
    assert (body["switch"], body["reason"]) == ("feature:nl2sql", "Wrong totals in the answers")
    assert three.ask(intent=world.ONTOLOGY)[0] == 200
    assert three.counted("core", "core-availability") == (1, 1)


def test_an_engaged_segment_refuses_its_visitors_alone(three: World) -> None:
    three.console.engage("segment:finance", reason="Finance sees others' totals")

    assert three.ask(segment="finance")[1]["switch"] == "segment:finance"
    assert three.ask(segment="hr")[0] == 200


def test_a_stopped_experiment_answers_its_members_as_before(three: World) -> None:
    three.console.engage("experiment:rag-v2", reason="The new retrieval fails")

    sql = "SELECT count(*) FROM cases"
    assert three.ask() == (200, {"sql": sql, "model": "gpt-4o", "retrieval": "v1"})


def test_a_switch_that_only_oracle_has_heard_of_is_no_failure_of_core(three: World) -> None:
    with Console().client(service="core") as unaware:
        core = Core(unaware, Faults(), ServiceCalls(unaware, three.ports), three.stream)
        three.console.engage("feature:nl2sql", reason="Wrong totals in the answers")
        with run_service(
            FaultyService({("POST", "/ask"): core.ask}, Faults()), poll_seconds=0.01
        ) as port:
            asked = {"user": MEMBER, "segment": "hr", "intent": world.NL2SQL}
            status, body = call(port, "/ask", asked, seconds=20)

        assert (status, body["switch"]) == (503, "feature:nl2sql")
        assert unaware.sli("core-availability").get_counts() == (0, 0)


def test_a_fault_of_the_experiment_fails_its_members_alone(three: World) -> None:
    three.faults["oracle"].inject(Fault(errors=1.0, only="experiment:rag-v2"))

    assert three.ask()[0] == 500
    assert three.ask(user=OTHER)[0] == 200
    assert three.counted("oracle", "oracle-answers") == (1, 2)
    assert three.counted("core", "core-availability") == (1, 2)


def test_who_was_answered_before_is_told_the_same_while_oracle_is_down_and_that_it_is_partial(
    three: World,
) -> None:
    _, before = three.ask()
    three.faults["oracle"].inject(Fault(down=True))

    assert three.ask() == (200, {**before, "partial": True, "source": "cache"})
    assert three.ask(segment="sales")[0] == 502
    assert three.counted("core", "core-whole-answers") == (1, 2)
    assert three.calls.policies[world.NL2SQL].counters.counted()["fallback"] == 1


def test_an_open_breaker_turns_visitors_away_at_once_and_says_who_is_away(three: World) -> None:
    three.console.force("core->oracle", "forced_open", expires_in=60)

    status, body = three.ask()

    assert (status, body["code"]) == (503, "ORACLE_UNAVAILABLE")
    assert three.ask(intent=world.ONTOLOGY)[0] == 200
    assert three.counted("core", "core-availability") == (1, 2)
    assert "core-&gt;oracle: \N{HEAVY MULTIPLICATION X} open" in page_of(three.ports["core"])
    assert "core-&gt;synapse: \N{HEAVY CHECK MARK} closed" in page_of(three.ports["core"])


def test_an_outage_opens_the_breaker_by_the_demo_s_own_configuration(three: World) -> None:
    three.console.configure("core->oracle", configured("core->oracle"))
    for _ in range(20):
        assert three.ask(user="u100")[0] == 200
    three.faults["oracle"].inject(Fault(down=True))

    with no_wait():
        statuses = [three.ask(user=f"u{number:03}")[0] for number in range(8)]

    assert statuses == [502] * 5 + [503] * 3
    counted = three.calls.policies[world.NL2SQL].counters.counted()
    assert (counted["failure"], counted["retry"]) == (15, 10)


def test_half_failures_of_oracle_do_not_open_it(three: World) -> None:
    three.console.configure("core->oracle", configured("core->oracle"))
    with no_wait():
        for number in range(60):
            three.faults["oracle"].inject(Fault(errors=float(number % 2)))
            three.ask(user=f"u{number:03}")

    assert three.calls.policies[world.NL2SQL].breaker.state == "closed"


def test_an_overloaded_model_is_stood_in_for_by_the_smaller_one(three: World) -> None:
    three.console.configure("oracle->openai", configured("oracle->openai"))
    three.faults["oracle"].inject(Fault(overloaded=1.0))

    assert {three.ask(user=f"u{number:03}")[1]["model"] for number in range(8)} == {"gpt-4o-mini"}
    assert three.counted("oracle", "oracle-answers") == (8, 8)


def test_a_slow_answer_is_waited_for_as_long_as_the_console_says(three: World) -> None:
    three.console.configure("core->oracle", {"timeout_ms": 200})
    three.faults["oracle"].inject(Fault(delay_ms=2_000))

    status, body = three.ask()

    assert (status, body["code"]) == (502, "ORACLE_UNAVAILABLE")
    assert three.calls.policies[world.NL2SQL].counters.counted()["timeout"] == 1


def test_a_service_that_is_down_is_core_s_failure(three: World) -> None:
    three.faults["oracle"].inject(Fault(down=True))

    assert three.ask()[0] == 502
    assert three.counted("core", "core-availability") == (0, 1)


def test_a_wrong_question_is_refused(three: World) -> None:
    assert three.ask(intent="weather")[0] == 400
    assert three.counted("core", "core-availability") == (0, 0)


def event(amount: str) -> Message:
    return Message(world.EVENTS, "synapse_group", "1-0", ((b"amount", amount.encode()),))


def test_an_amount_that_is_a_number_is_added(three: World) -> None:
    three.synapse.take(event("12.50"))
    three.synapse.take(event("0.25"))

    assert str(three.synapse.amounts) == "12.75"


def test_an_amount_as_people_write_it_is_refused_with_what_to_write(three: World) -> None:
    with pytest.raises(UnreadableAmount, match=r"'109,75'.* as in 109\.75$"):
        three.synapse.take(event("109,75"))


def test_garbled_events_have_amounts_that_synapse_refuses(three: World) -> None:
    three.faults["core"].inject(Fault(garbled=1.0))
    until = 300
    while not three.stream.events and until:
        three.ask(user=OTHER, intent=world.ONTOLOGY)
        until -= 1

    assert "," in three.stream.events[0]["amount"]


def test_core_counts_the_switches_that_it_applies(three: World) -> None:
    status, answer = call(three.ports["core"], "/switches", {}, seconds=5, method="GET")

    assert (status, answer) == (200, {"engaged_or_ramping": 0})


def test_a_button_breaks_a_service_and_the_page_says_so(three: World) -> None:
    changed = call_form(three.ports["core"], {"service": "oracle", "make": "slow"})

    assert changed == 303
    assert three.faults["oracle"].present.delay_ms == 800
    page = page_of(three.ports["core"])
    assert "800 ms slower</span>" in page
    assert "Switches engaged or ramping: 0." in page


@pytest.mark.parametrize("form", [{"service": "core"}, {"service": "x", "make": "slow"}, {}])
def test_a_form_without_a_known_button_is_refused(three: World, form: dict[str, str]) -> None:
    assert call_form(three.ports["core"], form) == 400


def configured(name: str) -> dict[str, Any]:
    """Return the demo's own configuration of a dependency."""
    texts = {file: (CONFIG / file).read_text() for file in FILES if (CONFIG / file).is_file()}
    return dict(read_files(texts).dependencies[name])


def call_form(port: int, form: dict[str, str]) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/", urlencode(form), headers)
    return connection.getresponse().status


def test_the_page_has_its_stylesheet(three: World) -> None:
    connection = HTTPConnection("127.0.0.1", three.ports["core"], timeout=20)
    connection.request("GET", "/page.css")
    response = connection.getresponse()

    assert response.headers["Content-Type"] == "text/css; charset=utf-8"
    assert "color-scheme: light dark;" in response.read().decode()


def test_the_page_shows_the_address_for_faults_of_each_service(three: World) -> None:
    page = page_of(three.ports["core"])

    assert all(f"POST http://127.0.0.1:{port}/faults" in page for port in three.ports.values())


def page_of(port: int) -> str:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/")
    return connection.getresponse().read().decode()
