"""Gates that hold a bulk retry while the breaker of a consumer is open.

The gates are rows of `controlplane.core.gates`; the periodic task `breakers.gates` evaluates them.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from breakers import names
from breakers.dead_letters.models import Letter, LetterStream, Replay
from breakers.models import Channel, Dependency
from controlplane.core.errors import InvalidInput
from controlplane.core.gates import services as gates
from controlplane.core.gates.questions import FAIL, GateQuestion
from controlplane.core.gates.verdicts import FRESH

TYPE = "breaker"
MAX_HELD = 20


def find_consumer_dependencies(stream: LetterStream) -> list[str]:
    """Return names (`producer->consumer`) of registered dependencies through the origin stream.

    If the letters name consumer groups, only consumers in these groups are included.
    """
    failed = Letter.objects.filter(stream=stream).exclude(consumer_group="")
    groups = set(failed.values_list("consumer_group", flat=True).distinct())
    consumers = {
        names.dependency_name(one.producer, one.consumer)
        for one in Channel.objects.filter(kind=Channel.Kind.STREAM, stream=stream.origin)
        if one.consumer and (not one.group or not groups or one.group in groups)
    }
    return sorted(_filter_registered(consumers))[:MAX_HELD]


def validate_dependencies(given: Sequence[Any]) -> list[str]:
    """Return the given names, each once. Raises :class:`InvalidInput` unless all are registered."""
    unique = list(dict.fromkeys(given)) if all(isinstance(one, str) for one in given) else None
    if unique is None or len(unique) > MAX_HELD:
        raise InvalidInput({"waits_for": [f"Must be up to {MAX_HELD} names like core->oracle."]})
    registered = _filter_registered(unique)
    if unknown := [one for one in unique if one not in registered]:
        raise InvalidInput({"waits_for": [f"There is no dependency {unknown[0][:100]!r}."]})
    return unique


def store_gates(replay: Replay, now: datetime) -> None:
    """Store a breaker gate in the database for each dependency in the job's `waits_for`."""
    gates.store_questions(_build_questions(replay, now))


def withdraw_gates(replay: Replay) -> None:
    """Delete the stored gates of a bulk job."""
    gates.withdraw_questions(_build_questions(replay, replay.job.created_at))


def describe_hold(replay: Replay, now: datetime) -> str:
    """Return a sentence that says why the bulk job is held; empty if it is not held.

    A breaker without any report does not hold the job: the dependency may have no breaker.
    """
    questions = _build_questions(replay, replay.job.created_at)
    for question, answer in zip(questions, gates.evaluate_questions(questions, now), strict=True):
        name = names.format_name(question.spec["dependency"])
        why = answer.evidence.get("why") or "it could not be read; retrying soon"
        observed_at = answer.evidence.get("observed_at")
        since = max(question.since, now - FRESH)
        if not (
            isinstance(observed_at, str)
            and since <= datetime.fromisoformat(observed_at) <= now + FRESH
        ):
            return f"The state of the breaker of {name} is unknown: {why}."
        if answer.verdict == FAIL or answer.evidence.get("half_open"):
            return f"The breaker of {name} is not closed: {why}."
    return ""


def _build_questions(replay: Replay, since: datetime) -> list[GateQuestion]:
    """Return the breaker gates of the job; they ignore reports before its start, `since`."""
    return [
        GateQuestion(f"job:{replay.job.pk}:{number}", {"type": TYPE, "dependency": name}, since)
        for number, name in enumerate(replay.waits_for)
    ]


def _filter_registered(dependencies: Iterable[str]) -> set[str]:
    return {row.name for row in Dependency.objects.registered().select_named(dependencies)}
