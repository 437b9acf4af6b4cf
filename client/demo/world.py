"""What all of the demo agree on: names, and what the environment says."""

import logging
import os
import sys
from pathlib import Path

from switchgear import Switchgear

HOST = "127.0.0.1"
SERVICES = ("core", "oracle", "synapse")
SEGMENTS = ("finance", "hr", "sales", "legal")
NL2SQL, ONTOLOGY = "nl2sql", "ontology"
"""Features: what a visitor's question is for."""
RETRIEVAL = "rag-v2"
"""An experiment: half of the visitors get their answers by it."""
EVENTS = "axiom:events"
USERS = 200


def port(service: str) -> int:
    """The port of a service on loopback."""
    return int(os.environ[f"DEMO_{service.upper()}_PORT"])


def takes_part(user: str) -> bool:
    """Whether a visitor is in the experiment's arm."""
    return user[-1:] in "02468"


def join(service: str) -> Switchgear:
    """This service's client, by the environment; its token is in a file that nobody else reads."""
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
    token = Path(os.environ["DEMO_TOKEN_FILE"]).read_text().strip()
    return Switchgear.from_env(token=token, service=service)
