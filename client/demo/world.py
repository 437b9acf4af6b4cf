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


def service_port(service: str) -> int:
    return int(os.environ[f"DEMO_{service.upper()}_PORT"])


def takes_part(user: str) -> bool:
    """Return True if this visitor is in the demo's experiment."""
    return user[-1:] in "02468"


def connect(service: str) -> Switchgear:
    """Return a Switchgear client for a service, with the token that `demo.prepare` created."""
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
    token = Path(os.environ["DEMO_TOKEN_FILE"]).read_text().strip()
    return Switchgear.from_env(token=token, service=service)
