"""Gates that hold a replay while the breaker of a consumer is open.

The gates are core's; the tick of breakers answers them.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from breakers import names
from breakers.dead_letters.models import Letter, LetterStream, Replay
from breakers.models import Channel, Dependency
from controlplane.core.errors import InvalidInput
from controlplane.core.gates import services as gates
from controlplane.core.gates.questions import FAIL, GateAnswer, GateQuestion
from controlplane.core.gates.verdicts import FRESH
from controlplane.core.jobs.models import Job

TYPE = "breaker"
MAX_HELD = 20


def find_consumer_dependencies(stream: LetterStream) -> list[str]:
    """Return the registered dependencies whose consumers read the origin of these letters.

    They are limited to the consumer groups that failed where these are known.
    """
    failed = Letter.objects.filter(stream=stream).exclude(consumer_group="")
    groups = set(failed.values_list("consumer_group", flat=True).distinct())
    found = Channel.objects.filter(kind=Channel.Kind.STREAM, stream=stream.origin)
    wanted = {
        names.dependency_name(one.producer, one.consumer)
        for one in found
        if one.consumer and (not one.group or not groups or one.group in groups)
    }
    return sorted(_filter_registered(wanted))[:MAX_HELD]


def validate_dependencies(given: Sequence[Any]) -> list[str]:
    """Return the named dependencies. Raises :class:`InvalidInput` for unknown ones."""
    wanted = list(dict.fromkeys(given)) if all(isinstance(one, str) for one in given) else None
    if wanted is None or len(wanted) > MAX_HELD:
        raise InvalidInput({"waits_for": [f"Must be up to {MAX_HELD} names like core->oracle."]})
    if unknown := [one for one in wanted if one not in _filter_registered(wanted)]:
        raise InvalidInput({"waits_for": [f"No dependency is named {unknown[0][:100]!r} here."]})
    return wanted


def ask_gates(replay: Replay, now: datetime) -> None:
    """Have the gates answered from now on, in the caller's transaction."""
    gates.store_questions(_build_questions(replay.job, replay.waits_for, now))


def withdraw_gates(replay: Replay) -> None:
    """Withdraw the gates in the caller's transaction."""
    gates.withdraw_questions(_build_questions(replay.job, replay.waits_for, None))


def describe_hold(replay: Replay, now: datetime) -> str:
    """Return what holds the replay, as a sentence; empty if nothing does."""
    questions = _build_questions(replay.job, replay.waits_for, None)
    for question, answer in zip(questions, gates.evaluate_questions(questions, now), strict=True):
        is_known = _is_known(answer, question.since, now)
        if said := _describe_answer(str(question.spec["dependency"]), answer, is_known):
            return said
    return ""


def _build_questions(
    job: Job, waits_for: Sequence[str], now: datetime | None
) -> list[GateQuestion]:
    """Return the questions of the job, the same ones each time: `since` is the job's beginning."""
    since = now or job.created_at
    return [
        GateQuestion(f"job:{job.pk}:{number}", {"type": TYPE, "dependency": name}, since)
        for number, name in enumerate(waits_for)
    ]


def _describe_answer(name: str, answer: GateAnswer, is_known: bool) -> str:
    """Describe what holds the replay.

    A breaker that nobody reports holds nothing: there may be none.
    """
    why = str(answer.evidence.get("why") or "it is tried again")
    if not is_known:
        return f"Whether the breaker of {name} is closed is not known: {why}."
    if answer.verdict == FAIL or answer.evidence.get("half_open"):
        return f"The breaker of {name} is not closed: {why}."
    return ""


def _is_known(answer: GateAnswer, since: datetime, now: datetime) -> bool:
    """Return True if the gate was answered since the job began, and recently."""
    said = answer.evidence.get("observed_at")
    if not isinstance(said, str):
        return False
    return max(since, now - FRESH) <= datetime.fromisoformat(said) <= now + FRESH


def _filter_registered(wanted: Sequence[str] | set[str]) -> set[str]:
    pairs = [pair for one in wanted if (pair := names.split_name(one))]
    found = Dependency.objects.registered().filter(
        caller__in=[caller for caller, _ in pairs], callee__in=[callee for _, callee in pairs]
    )
    return {names.dependency_name(*pair) for pair in found.values_list("caller", "callee")} & set(
        wanted
    )
