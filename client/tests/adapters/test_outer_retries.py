"""Retries of tenacity and stamina: counted, left out within others, never for refusals."""

import asyncio

import pytest
import stamina
import tenacity

from switchgear import journal
from switchgear.adapters import stamina as for_stamina
from switchgear.adapters import tenacity as for_tenacity
from switchgear.patterns.counters import Counters
from switchgear.patterns.idempotency import idempotency_key, request_key
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.propagation import outgoing
from switchgear.patterns.retry import Retry
from switchgear.refusals import CircuitOpen

NAME = "core->oracle"


def by_tenacity(counters):
    return for_tenacity.outermost(
        NAME, counters, stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_none()
    )


def by_stamina(counters):
    return for_stamina.outermost(
        NAME, counters, on=ConnectionError, attempts=3, wait_initial=0, wait_max=0, wait_jitter=0
    )


@pytest.fixture(params=[by_tenacity, by_stamina])
def retrying(request):
    counters = Counters()
    return request.param(counters), counters


@pytest.fixture
def entries():
    noted = []
    remove = journal.add_hook(noted.append)
    yield noted
    remove()


def failing(times, error=ConnectionError, answer="answer"):
    calls = []

    def call():
        calls.append((outgoing().get("X-Retry-Attempt"), idempotency_key()))
        if len(calls) <= times:
            raise error(NAME)
        return answer

    return call, calls


def test_each_retry_is_counted_and_told_over_the_wire(retrying, entries):
    decorate, counters = retrying
    call, calls = failing(2)

    assert decorate(call)() == "answer"
    assert [attempt for attempt, _ in calls] == ["0", "1", "2"]
    assert len({key for _, key in calls}) == 1
    assert None not in calls[0]
    assert counters.counted()["retry"] == 2
    assert [(e.about, e.fields["attempt"], e.fields["error"]) for e in entries] == [
        (NAME, 1, "ConnectionError"),
        (NAME, 2, "ConnectionError"),
    ]
    assert outgoing() == {}


def test_requests_of_each_attempt_have_the_same_keys(retrying):
    decorate, _ = retrying
    sent = []

    def call():
        sent.append([request_key(b"POST", b"/mails") for _ in range(2)])
        if len(sent) < 3:
            raise ConnectionError(NAME)

    decorate(call)()
    assert sent[0] == sent[1] == sent[2]
    assert len(set(sent[0])) == 2


def test_coroutine_function_is_tried_again(retrying):
    decorate, counters = retrying
    call, _ = failing(2)

    @decorate
    async def call_once():
        await asyncio.sleep(0)
        return call()

    assert asyncio.run(call_once()) == "answer"
    assert counters.counted()["retry"] == 2


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        pytest.param(ConnectionError, 3, id="a failure"),
        pytest.param(CircuitOpen, 1, id="a refusal"),
    ],
)
def test_last_error_is_raised_as_it_is_and_is_no_retry(retrying, error, attempts):
    decorate, counters = retrying
    call, calls = failing(9, error)
    with pytest.raises(error):
        decorate(call)()
    assert len(calls) == attempts
    assert counters.counted()["retry"] == attempts - 1


@pytest.mark.parametrize(
    ("is_ours_outer", "retry_on", "retries"),
    [
        pytest.param(True, None, 0, id="within ours"),
        pytest.param(False, None, 2, id="around ours"),
        pytest.param(True, (KeyError,), 2, id="within ours of other errors"),
    ],
)
def test_with_our_retry_only_the_outer_one_retries(retrying, is_ours_outer, retry_on, retries):
    decorate, counters = retrying
    call, calls = failing(9)
    ours = Retry(parameters=RetryParameters(attempts=3, base_seconds=0), retry_on=retry_on)

    with pytest.raises(ConnectionError):
        (ours(decorate(call)) if is_ours_outer else decorate(ours(call)))()

    assert len(calls) == 3
    assert counters.counted()["retry"] == retries


def of_tenacity(error):
    return for_tenacity.outermost(
        "job",
        stop=tenacity.stop_after_attempt(3),
        wait=tenacity.wait_none(),
        retry=tenacity.retry_if_exception_type(error),
    )


def of_stamina(error):
    return for_stamina.outermost("job", on=error, wait_initial=0, wait_max=0, wait_jitter=0)


@pytest.mark.parametrize("job_of", [of_tenacity, of_stamina])
def test_our_retry_within_one_for_other_errors_retries(job_of):
    call, calls = failing(9)
    ours = Retry(parameters=RetryParameters(attempts=3, base_seconds=0))

    with pytest.raises(ConnectionError):
        job_of(KeyError)(ours(call))()

    assert len(calls) == 3


def test_one_that_can_not_be_asked_is_assumed_to_retry():
    call, calls = failing(9)
    needs_more = for_tenacity.outermost(
        "job", stop=tenacity.stop_after_attempt(2), retry=lambda state: state.kwargs["again"]
    )

    with pytest.raises(ConnectionError) as failed:
        needs_more(lambda again: Retry(sleep=lambda seconds: None)(call)())(again=True)

    assert len(calls) == 2
    assert "not retried here; the retry job retries" in failed.value.__notes__[0]


def test_each_within_the_other_retries_once(retrying):
    decorate, _ = retrying
    for around in (by_tenacity(None), by_stamina(None)):
        call, calls = failing(9)

        with pytest.raises(ConnectionError) as failed:
            around(decorate(call))()

        assert len(calls) == 3
        assert f"not retried here; the retry {NAME} retries" in failed.value.__notes__[0]


def test_a_result_that_both_retry_is_retried_by_the_outer_one():
    calls = []
    is_bad = tenacity.retry_if_result(lambda given: given == "bad")

    def decorate():
        return for_tenacity.outermost(
            NAME, stop=tenacity.stop_after_attempt(3), retry=is_bad,
            retry_error_callback=lambda state: state.outcome.result(),
        )  # fmt: skip

    decorate()(decorate()(lambda: calls.append(1) or "bad"))()

    assert len(calls) == 3


def test_parts_for_a_decorator_of_tenacity_that_is_there(entries):
    counters, slept = Counters(), []

    @tenacity.retry(
        stop=tenacity.stop_after_attempt(3),
        wait=tenacity.wait_none(),
        retry=for_tenacity.unless_refused(tenacity.retry_if_exception_type(Exception)),
        before_sleep=for_tenacity.counted(NAME, counters, then=slept.append),
        reraise=True,
    )
    def ask(call):
        return call()

    assert ask(failing(2)[0]) == "answer"
    assert counters.counted()["retry"] == 2
    assert len(slept) == 2
    assert [entry.fields["wait_seconds"] for entry in entries] == [0, 0]

    call, calls = failing(9, CircuitOpen)
    with pytest.raises(CircuitOpen):
        ask(call)
    call, calls = failing(9)
    with pytest.raises(ConnectionError):
        Retry(parameters=RetryParameters(attempts=2, base_seconds=0))(lambda: ask(call))()
    assert len(calls) == 2


def test_result_that_is_not_good_enough_is_counted_too(entries):
    answers = [None, None, "good"]
    decorate = for_tenacity.outermost(
        NAME, wait=tenacity.wait_none(), retry=tenacity.retry_if_result(lambda given: given is None)
    )
    assert decorate(lambda: answers.pop(0))() == "good"
    assert [entry.fields["error"] for entry in entries] == ["result", "result"]


def test_hook_counts_decorators_of_stamina_that_are_there(entries):
    counters, before = Counters(), stamina.instrumentation.get_on_retry_hooks()

    @stamina.retry(
        on=for_stamina.unless_refused((ConnectionError, CircuitOpen)), attempts=3,
        wait_initial=0, wait_max=0, wait_jitter=0,
    )  # fmt: skip
    def ask(call):
        return call()

    name = f"{__name__}.{ask.__qualname__}"
    for_stamina.count_all({name: (NAME, counters)})
    try:
        assert ask(failing(2)[0]) == "answer"
        by_stamina(None)(failing(1)[0])()
    finally:
        stamina.instrumentation.set_on_retry_hooks(before)
    assert counters.counted()["retry"] == 2
    assert len(entries) == 3

    call, calls = failing(9, CircuitOpen)
    with pytest.raises(CircuitOpen):
        ask(call)
    assert len(calls) == 1
