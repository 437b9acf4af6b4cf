"""Request handlers, one per path: they wait, stream, record and return answers."""

import re
from urllib.parse import parse_qs

from controlplane.core.errors import DomainError, InvalidInput
from controlplane.dataplane.state import State
from switches.evaluate import read_question
from switches.scopes import GLOBAL_ID

from . import metrics as dataplane_metrics
from .ingest.instance_rows import InstanceReport
from .memory import version_marks
from .memory.compression import encode_gzip, wants_gzip
from .memory.instance_names import is_part, service_of
from .memory.listeners import CONFIG
from .serving import answers, held_requests, ofrep
from .serving.answers import Answer
from .serving.call import Call
from .serving.connection_watch import HeldCaller

FLAG_PREFIX = "/ofrep/v1/evaluate/flags/"
CONFIG_SCOPES = ("breakers:read", "report:write", "switches:read")
MAX_WAIT_SECONDS = 60.0
CATCH_UP_SECONDS = 2.0
_PLAIN_WAIT = re.compile(rb"wait=([0-9]{1,2})")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")


async def snapshot(state: State, call: Call) -> Answer | None:
    """Return the snapshot, with `?wait=` only once it differs from the caller's copy."""
    query = call.scope["query_string"]
    if query or b"switchgear-instance" in call.headers:
        caller = HeldCaller(state, call)
        caller.record_presence()
        if (seconds := _wait(query)) and not await _wait_for_change(state, call, caller, seconds):
            return None
    copy = answers.served_to(state, call.headers)
    answer = answers.snapshot(state, call.headers, copy)
    return await encode_gzip(answer, copy.gzip) if wants_gzip(answer, call.headers) else answer


async def _wait_for_change(state: State, call: Call, caller: HeldCaller, seconds: float) -> bool:
    """Wait while the caller's copy is current; return False if the caller has disconnected."""
    known = version_marks.parse_tags(call.headers.get(b"if-none-match", b""))

    def is_current() -> bool:
        if state.copy is None:
            return False
        return version_marks.name(known, answers.served_to(state, call.headers))

    return not is_current() or await held_requests.hold_until_changed(
        state, call, caller, seconds, is_current
    )


async def stream(state: State, call: Call) -> None:
    """Stream every new version, starting with the current one unless the caller has it."""
    caller = HeldCaller(state, call)
    caller.record_presence()
    answers.served(state)
    known = version_marks.parse_event_id(call.headers.get(b"last-event-id", b""))
    sent: tuple[bytes, ...] | None = None

    def next_event() -> tuple[bytes, ...]:
        nonlocal sent
        copy = answers.served_to(state, call.headers)
        if copy.event == sent or (sent is None and version_marks.name(known, copy)):
            return ()
        sent = copy.event
        return sent

    await held_requests.stream(state, call, caller, next_event)


async def report(state: State, call: Call) -> Answer:
    """Store the report of an instance."""
    used = call.credential
    token_id, services = (used.token_id, used.services) if used else (0, ())
    state.throttle.check(token_id)
    try:
        document = answers.object_in(call.body)
    except DomainError:
        state.throttle.admit(token_id, {})
        raise
    state.throttle.admit(token_id, document)
    told = await state.ledger.read(document)
    _check_services(call, told)
    duplicate = await state.ledger.report(told, state.copy, token_id, services)
    return answers.report(state, told.service, duplicate=duplicate, dropped=told.dropped)


async def config(state: State, call: Call) -> Answer | None:
    """Return a service's policies and overrides, with `?wait=` only once they have changed."""
    query = call.scope["query_string"]
    service, seconds = _service(query), _wait(query)
    if call.credential:
        call.credential.require_service(service)
    caller = HeldCaller(state, call, *CONFIG_SCOPES)
    caller.record_connected()
    known = call.headers.get(b"if-none-match")

    def is_current() -> bool:
        return known is not None and answers.policies(state, service).is_known(known)

    waits = seconds and is_current()
    if waits and not await held_requests.hold_until_changed(
        state, call, caller, seconds, is_current, CONFIG
    ):
        return None
    told = answers.policies(state, service)
    answer = answers.config(state, call.headers, told)
    return await encode_gzip(answer, told.gzip) if wants_gzip(answer, call.headers) else answer


async def check(state: State, call: Call) -> Answer:
    """Return the decision for the question in the body."""
    question = read_question(answers.object_in(call.body))
    decision, answer = answers.decision(state, call.headers, question)
    state.ledger.record_check(_caller(call), question.switch_ids, decision.switch)
    return answer


async def flag(state: State, call: Call) -> Answer:
    """Evaluate one OpenFeature flag, named by the last part of the path."""
    key = call.scope["path"].removesuffix("/").removeprefix(FLAG_PREFIX)

    def record_check(blocked_by: str | None) -> None:
        state.ledger.record_check(_caller(call), {key, GLOBAL_ID}, blocked_by)

    return ofrep.one(state, call.headers, call.body, key, record_check)


async def flags(state: State, call: Call) -> Answer | None:
    """Evaluate every OpenFeature flag.

    A caller that learned of a change from another process waits here until this one has it.
    """
    query = call.scope["query_string"]

    def is_behind() -> bool:
        return ofrep.is_behind(state, query)

    if query and is_behind():
        caller = HeldCaller(state, call)
        if not await held_requests.hold_until_changed(
            state, call, caller, CATCH_UP_SECONDS, is_behind
        ):
            return None
    answer = ofrep.bulk(state, call.headers, call.body, query)
    if not wants_gzip(answer, call.headers):
        return answer
    form = ofrep.gzip_form(state, call.body, answer[2])
    return answer if form is None else await encode_gzip(answer, form)


async def flag_events(state: State, call: Call) -> None:
    """Notify OpenFeature clients whenever their flags may have changed."""
    answers.served(state)
    sent = call.headers.get(b"last-event-id", b"").decode("latin-1")

    def next_event() -> tuple[bytes, ...]:
        nonlocal sent
        present = str(ofrep.mark(state))
        if present == sent:
            return ()
        sent = present
        return (ofrep.frame(state),)

    await held_requests.stream(state, call, HeldCaller(state, call), next_event)


async def moved(_state: State, call: Call) -> Answer:
    """Redirect to the canonical form of the path, keeping method and query."""
    return answers.moved(call.scope["path"].removesuffix("/"), call.scope["query_string"])


async def live(_state: State, _call: Call) -> Answer:
    return answers.live()


async def ready(state: State, _call: Call) -> Answer:
    return answers.ready(state)


async def metrics(state: State, call: Call) -> Answer:
    accept, accept_encoding = (
        call.headers.get(name, b"").decode("latin-1") for name in (b"accept", b"accept-encoding")
    )
    return dataplane_metrics.page(state, accept, accept_encoding)


async def degradation(state: State, _call: Call) -> Answer:
    return answers.degradation(state)


def _wait(query: bytes) -> float:
    """Return the seconds in `?wait=`, at most 60; 0 without it."""
    plain = _PLAIN_WAIT.fullmatch(query)
    if plain:
        return min(float(plain[1]), MAX_WAIT_SECONDS)
    given = parse_qs(query.decode("latin-1"), keep_blank_values=True).get("wait")
    if given is None:
        return 0.0
    if not _SECONDS.fullmatch(given[-1]):
        raise InvalidInput({"wait": ["Must be a number of seconds, 0 to 60."]})
    return min(float(given[-1]), MAX_WAIT_SECONDS)


def _service(query: bytes) -> str:
    """Return the service named in `?service=`."""
    given = parse_qs(query.decode("latin-1")).get("service", [""])[-1]
    if not is_part(given):
        raise InvalidInput({"service": ["Name the service that asks: ?service=core."]})
    return given


def _check_services(call: Call, told: InstanceReport) -> None:
    """Raise :class:`Forbidden` if the token may not report for these services."""
    used = call.credential
    if used and used.services:
        for service in {told.service, *(one.partition("->")[0] for one in told.breakers or ())}:
            used.require_service(service)


def _caller(call: Call) -> str:
    """Return the instance's name if valid, else `token:<name>`."""
    name = call.headers.get(b"switchgear-instance", b"").decode("utf-8", "replace")
    if service_of(name) is not None:
        return name
    return f"token:{call.credential.name}" if call.credential else ""
