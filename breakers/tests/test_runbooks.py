"""Messages about dependencies and services lead to a runbook: their own, else the one that fits."""

import pytest

from breakers import message_facts
from breakers.models import Dependency, Probe, Service
from breakers.probes import services as probes


@pytest.mark.parametrize(
    ("own", "runbook"),
    [("https://wiki/openai", "https://wiki/openai"), ("", "/runbooks/nl2sql-failing/")],
)
def test_message_about_a_dependency(settings, own, runbook):
    settings.PUBLIC_URL = ""
    dependency = Dependency(caller="oracle", callee="openai", runbook_url=own)

    assert message_facts.dependency_facts(dependency)["runbook"] == runbook


def test_message_about_a_dependency_that_nobody_wrote_of():
    dependency = Dependency(caller="payroll", callee="bank")

    assert message_facts.dependency_facts(dependency)["runbook"] is None


def test_message_about_a_store_that_is_away(settings):
    settings.PUBLIC_URL = "https://ops.example.org"

    facts = probes._message_facts(Probe(service=Service(slug="redis")), probes.ProbeState())[
        "runbook"
    ]

    assert facts == "https://ops.example.org/runbooks/redis-down/"
