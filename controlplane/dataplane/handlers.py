"""Request handlers of the data plane, one per path.

Latency metrics are labeled with the handlers' names.
"""

import re
from dataclasses import replace
from functools import lru_cache
from urllib.parse import parse_qs

from controlplane.core.errors import DomainError, InvalidInput
from controlplane.dataplane.state import State
from switches.evaluate import read_question
from switches.scopes import GLOBAL_ID

from . import metrics as dataplane_metrics
from .memory.compression import encode_gzip, wants_gzip
from .memory.instance_names import is_part, service_of
from .memory.listeners import CONFIG
from .memory.served_copy import match_copy, parse_event_id, parse_tags
from .serving import held_requests, ofrep, responses
from .serving.call import Call
from .serving.held_requests import HeldCaller
from .serving.responses import Response

FLAG_PREFIX = "/ofrep/v1/evaluate/flags/"
CONFIG_SCOPES = ("breakers:read", "report:write", "switches:read")
MAX_WAIT_SECONDS = 60.0
CATCH_UP_SECONDS = 2.0
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")


async def snapshot(state: State, call: Call) -> Response | None:
    """Return the snapshot; with `?wait=`, hold the request until the client's copy is outdated."""
    query = call.scope["query_string"]
    if query or b"switchgear-instance" in call.headers:
        caller = HeldCaller(state, call)
        caller.record_presence()
        if (seconds := _parse_wait(query)) and not await _wait_for_change(
            state, call, caller, seconds
        ):
            return None
    copy = responses.copy_for_caller(state, call.headers)
    response = responses.answer_snapshot(state, call.headers, copy)
    return (
        await encode_gzip(response, copy.gzip) if wants_gzip(response, call.headers) else response
    )


async def _wait_for_change(state: State, call: Call, caller: HeldCaller, seconds: float) -> bool:
    """Wait while the client's copy of the snapshot is current; return False if it disconnects."""
    tag = call.headers.get(b"if-none-match", b"")
    known = parse_tags(tag)

    def is_current() -> bool:
        if state.copy is None:
            return False
        copy = responses.copy_for_caller(state, call.headers)
        return tag == copy.etag or match_copy(known, copy)

    return not is_current() or await held_requests.hold_until_changed(
        state, call, caller, seconds, is_current
    )


async def stream(state: State, call: Call) -> None:
    """Stream the current snapshot, unless the client has it, and then each new one."""
    caller = HeldCaller(state, call)
    caller.record_presence()
    responses.current_copy(state)
    known = parse_event_id(call.headers.get(b"last-event-id", b""))
    sent: bytes | None = None

    def next_event() -> tuple[bytes, ...]:
        nonlocal sent
        copy = responses.copy_for_caller(state, call.headers)
        # Not the events: a copy may be signed again.
        if copy.body == sent or (sent is None and match_copy(known, copy)):
            return ()
        sent = copy.body
        return copy.event

    await held_requests.stream_events(state, call, caller, next_event)


async def report(state: State, call: Call) -> Response:
    """Store an instance's report; the token must be allowed to act for all services in it."""
    credential = call.credential
    token_id, services = (credential.token_id, credential.services) if credential else (0, ())
    state.throttle.check(token_id)
    try:
        document = responses.parse_object(call.body)
    except DomainError:
        state.throttle.admit(token_id, {})
        raise
    state.throttle.admit(token_id, document)
    parsed = await state.ledger.parser.parse(document)
    if call.headers.get(b"switchgear-final-report") == b"true":
        parsed = replace(parsed, is_final=True)
    if credential:
        callers = (name.partition("->")[0] for name in parsed.breakers or ())
        for service in {parsed.service, *callers}:
            state.callers.require(credential, service)
    state.add_checked(parsed.checks)
    duplicate = await state.ledger.report(parsed, state.copy, token_id, services)
    return responses.answer_report(
        state, parsed.service, duplicate=duplicate, dropped=parsed.dropped
    )


async def config(state: State, call: Call) -> Response | None:
    """Return a service's dependency policies and breaker overrides.

    With `?wait=`, hold the request until they change.
    """
    query = call.scope["query_string"]
    service = parse_qs(query.decode("latin-1")).get("service", [""])[-1]
    if not is_part(service):
        raise InvalidInput({"service": ["Add the calling service: ?service=core."]})
    seconds = _parse_wait(query)
    if call.credential:
        call.credential.require_service(service)
    caller = HeldCaller(state, call, *CONFIG_SCOPES)
    caller.record_connected()
    known = call.headers.get(b"if-none-match")

    def is_current() -> bool:
        return known is not None and responses.service_policies(state, service).is_known(known)

    waits = seconds and is_current()
    if waits and not await held_requests.hold_until_changed(
        state, call, caller, seconds, is_current, CONFIG
    ):
        return None
    policies = responses.service_policies(state, service)
    response = responses.answer_config(state, call.headers, policies)
    return (
        await encode_gzip(response, policies.gzip)
        if wants_gzip(response, call.headers)
        else response
    )


async def check(state: State, call: Call) -> Response:
    question = read_question(responses.parse_object(call.body))
    decision, response = responses.decide(state, call.headers, question)
    state.ledger.check_counter.record_check(
        _name_caller(call), question.switch_ids, decision.switch
    )
    return response


async def flag(state: State, call: Call) -> Response:
    key = call.scope["path"].removesuffix("/").removeprefix(FLAG_PREFIX)

    def record_check(blocked_by: str | None) -> None:
        state.ledger.check_counter.record_check(_name_caller(call), {key, GLOBAL_ID}, blocked_by)

    return ofrep.answer_flag(state, call.body, key, record_check)


async def flags(state: State, call: Call) -> Response | None:
    """Return the evaluation of every OpenFeature flag.

    If `flagConfigEtag` names a newer version than this process serves, first wait up to
    `CATCH_UP_SECONDS` for it.
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
    response = ofrep.answer_flags(state, call.headers, call.body, query)
    if not wants_gzip(response, call.headers):
        return response
    form = ofrep.gzip_form(state, call.body, response[2])
    return response if form is None else await encode_gzip(response, form)


async def flag_events(state: State, call: Call) -> None:
    responses.current_copy(state)
    sent = call.headers.get(b"last-event-id", b"").decode("latin-1")

    def next_event() -> tuple[bytes, ...]:
        nonlocal sent
        present = str(ofrep.current_mark(state))
        if present == sent:
            return ()
        sent = present
        return (ofrep.refetch_event(state),)

    await held_requests.stream_events(state, call, HeldCaller(state, call), next_event)


async def redirect(_state: State, call: Call) -> Response:
    return responses.answer_redirect(
        call.scope["path"].removesuffix("/"), call.scope["query_string"]
    )


async def live(_state: State, _call: Call) -> Response:
    return responses.answer_json(200, {"status": "live"}, responses.NO_STORE)


async def ready(state: State, _call: Call) -> Response:
    return responses.answer_ready(state)


async def metrics(state: State, call: Call) -> Response:
    accept, accept_encoding = (
        call.headers.get(name, b"").decode("latin-1") for name in (b"accept", b"accept-encoding")
    )
    return dataplane_metrics.render_metrics(state, accept, accept_encoding)


async def keys(state: State, _call: Call) -> Response:
    return responses.answer_json(200, {"keys": state.public_keys}, responses.NO_STORE)


async def degradation(state: State, _call: Call) -> Response:
    return responses.answer_json(200, responses.degradation_status(state), responses.NO_STORE)


@lru_cache(maxsize=256)
def _parse_wait(query: bytes) -> float:
    """Return the seconds in `?wait=`, at most 60; 0 without the parameter. Cached, for speed."""
    values = parse_qs(query.decode("latin-1"), keep_blank_values=True).get("wait")
    if values is None:
        return 0.0
    if not _SECONDS.fullmatch(values[-1]):
        raise InvalidInput({"wait": ["Must be a number of seconds, 0 to 60."]})
    return min(float(values[-1]), MAX_WAIT_SECONDS)


def _name_caller(call: Call) -> str:
    """Return the instance name in the header `Switchgear-Instance`, else `token:<token's name>`.

    An invalid header counts as missing.
    """
    name = call.headers.get(b"switchgear-instance", b"").decode("utf-8", "replace")
    if service_of(name) is not None:
        return name
    return f"token:{call.credential.name}" if call.credential else ""
