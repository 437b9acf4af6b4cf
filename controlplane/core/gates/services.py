"""Asking gates, and taking in what outsiders say of theirs."""

from collections.abc import Collection, Sequence
from datetime import datetime

from controlplane.core.gates.questions import NO_DATA, Answer, Question


def ask(questions: Sequence[Question]) -> None:
    """Write down the questions that apps of ours answer, in the caller's transaction."""


def withdraw(keys: Collection[str]) -> None:
    """Nobody needs an answer to these any more, in the caller's transaction."""


def answers(questions: Sequence[Question], now: datetime) -> list[Answer]:
    """What is known of each question now, in their order; a few queries for any number."""
    return [Answer(NO_DATA) for _ in questions]
