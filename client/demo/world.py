"""Names and environment variables that all services of the demo share."""

import logging
import os
import sys
from pathlib import Path

from switchgear import Switchgear

HOST = "127.0.0.1"
SERVICES = ("core", "oracle", "synapse")
SEGMENTS = ("finance", "hr", "sales", "legal")
NL2SQL, ONTOLOGY = "nl2sql", "ontology"
"""Intents of questions, which are also the feature keys of switches."""
RETRIEVAL = "rag-v2"
"""The key of the experiment, in which half of the visitors take part."""
EVENTS = "axiom:events"
USERS = 200


SENTENCES = {
    "circuit_breaker_opened": "the breaker {about} is open: calls are rejected",
    "circuit_breaker_half_open": "the breaker {about} is half-open: a few calls probe the service",
    "circuit_breaker_closed": "the breaker {about} is closed: calls pass",
    "retry_budget_exhausted": "too many calls of {about} were retried: no retries for now",
    "dlq_message_added": "an event failed three times and is a dead letter now",
}
"""Sentences that the terminal shows for the client library's events, by event name."""


def service_port(service: str) -> int:
    return int(os.environ[f"DEMO_{service.upper()}_PORT"])


def takes_part(user: str) -> bool:
    """Return True if this visitor is in the demo's experiment."""
    return user[-1:] in "02468"


def connect(service: str) -> Switchgear:
    """Return a Switchgear client for a service, and log to the terminal."""
    output = logging.StreamHandler(sys.stdout)
    output.setFormatter(SentenceFormatter("%(message)s"))
    logging.basicConfig(handlers=[output], level=logging.INFO)
    return Switchgear.from_env(token=read_token(), service=service)


def read_token() -> str:
    """Return the token for the console, which `demo.prepare` created."""
    return Path(os.environ["DEMO_TOKEN_FILE"]).read_text().strip()


class SentenceFormatter(logging.Formatter):
    """Formats events of the client library as sentences for people who watch the demo."""

    def format(self, record: logging.LogRecord) -> str:
        sentence = SENTENCES.get(getattr(record, "event", ""))
        if sentence is None:
            return super().format(record)
        return sentence.format(about=getattr(record, "about", ""))
