"""The lines that the demo's services print."""

import logging

from demo.world import SENTENCES, SentenceFormatter
from switchgear import journal


def line(message: str, **extra: str) -> str:
    record = logging.LogRecord("switchgear", logging.WARNING, "", 0, message, (), None)
    record.__dict__.update(extra)
    return SentenceFormatter("%(message)s").format(record)


def test_events_of_the_client_are_sentences() -> None:
    text = line("raw", event="circuit_breaker_opened", about="core->oracle")

    assert text == "the breaker core->oracle is open: calls are rejected"


def test_each_sentence_belongs_to_an_event_of_the_client() -> None:
    assert set(SENTENCES) <= set(journal.LEVELS)


def test_other_lines_stay_as_they_are() -> None:
    assert line("feature:nl2sql is engaged") == "feature:nl2sql is engaged"
