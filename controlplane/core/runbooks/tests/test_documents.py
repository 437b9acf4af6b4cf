"""Reading runbooks, and finding the one that an alert is about."""

import pytest

from controlplane.core import runbooks
from controlplane.core.runbooks import documents, library

PLAIN = "---\ntitle: A title\n---\n## At once\n"


def read(front, slug="it"):
    return documents.parse_runbook(slug, f"---\n{front}\n---\n## At once\n")


def test_front_matter_and_text_are_taken_apart():
    found = read(
        "title: Redis is away\nnumber: 5\nsymptoms: [one, two]\nalerts: [{subject: redis}]"
    )

    assert (found.title, found.number, found.symptoms) == ("Redis is away", 5, ("one", "two"))
    assert found.body == "## At once\n"


def test_comments_are_left_out():
    marked = (
        "1. Look:\n\n   <!-- not run: needs a cluster -->\n   ```sh\n   kubectl get pods\n   ```\n"
    )

    found = documents.parse_runbook("it", f"---\ntitle: x\n---\n{marked}")

    assert found.body == "1. Look:\n\n   ```sh\n   kubectl get pods\n   ```\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "## At once\n",
        "---\ntitle: no end\n",
        "---\n- a list\n---\n",
        "---\nnumber: 1\n---\n",
        "---\ntitle: [\n---\n",
        "---\ntitle: x\nalert: {}\n---\n",
        "---\ntitle: x\nalerts: {}\n---\n",
        "---\ntitle: x\nalerts: [{}]\n---\n",
        "---\ntitle: x\nalerts: [{colour: red}]\n---\n",
        "---\ntitle: x\nnumber: one\n---\n",
        "---\ntitle: x\nsymptoms: many\n---\n",
    ],
)
def test_what_is_no_runbook_is_refused_and_named(text):
    with pytest.raises(documents.InvalidRunbook, match=r"^it: "):
        documents.parse_runbook("it", text)


@pytest.mark.parametrize("slug", ["", "Upper", "a_b", "../etc", "a--b"])
def test_name_of_a_file_must_do_as_an_address(slug):
    with pytest.raises(documents.InvalidRunbook):
        documents.parse_runbook(slug, PLAIN)


def test_every_field_of_a_pattern_must_fit():
    one = read("title: x\nalerts: [{service: core, name: 'api-*'}]")

    assert documents.find_best([one], build_query(service="core", name="api-availability")) is one
    assert documents.find_best([one], build_query(service="core", name="batch")) is None
    assert (
        documents.find_best([one], build_query(service="oracle", name="api-availability")) is None
    )


def test_pattern_that_says_more_wins_and_a_word_wins_over_a_star():
    anything = read("title: a\nalerts: [{service: oracle}]")
    some = read("title: b\nalerts: [{subject: '*->openai'}]")
    this = read("title: c\nalerts: [{subject: 'oracle->openai'}]")

    found = documents.find_best(
        [anything, some, this], build_query("oracle", subject="oracle->openai")
    )
    other = documents.find_best(
        [anything, some, this], build_query("vision", subject="vision->openai")
    )

    assert found is this
    assert other is some
    assert (
        documents.find_best([anything, some, this], build_query("oracle", subject="oracle"))
        is anything
    )


def build_query(service="", kind="", name="", subject=""):
    return {"service": service, "kind": kind, "name": name, "subject": subject}


def test_the_ten_scenarios_are_there_in_order():
    assert [one.number for one in library.list_runbooks()][:10] == list(range(1, 11))


@pytest.mark.parametrize(
    ("alert", "slug"),
    [
        ({"service": "core", "kind": "burn", "name": "core-availability"}, "core-api-down"),
        ({"kind": "alertmanager", "name": "ServiceDown", "service": "core"}, "core-api-down"),
        ({"kind": "alertmanager", "name": "ServiceDown"}, "postgresql-down"),
        ({"kind": "alertmanager", "name": "ServiceDown", "service": "vision"}, "vision-timeouts"),
        ({"kind": "breaker", "service": "oracle", "subject": "oracle->openai"}, "nl2sql-failing"),
        (
            {"kind": "breaker", "service": "vision", "subject": "vision->openai"},
            "llm-providers-down",
        ),
        ({"kind": "threshold", "service": "core", "subject": "core->oracle"}, "nl2sql-failing"),
        ({"kind": "alertmanager", "name": "LLMErrorRate"}, "llm-providers-down"),
        ({"kind": "alertmanager", "name": "LLMErrorRate", "service": "oracle"}, "nl2sql-failing"),
        ({"kind": "alertmanager", "name": "HighLatency", "service": "vision"}, "vision-timeouts"),
        (
            {"kind": "breaker", "service": "synapse", "subject": "synapse->neo4j"},
            "neo4j-connection",
        ),
        ({"kind": "away", "subject": "redis"}, "redis-down"),
        ({"kind": "alertmanager", "name": "RedisHighMemory"}, "redis-down"),
        ({"kind": "away", "subject": "postgresql"}, "postgresql-down"),
        ({"kind": "alertmanager", "name": "OutboxBacklog"}, "outbox-backlog"),
        ({"kind": "dead_letters", "name": "axiom:dlq:events"}, "dead-letters"),
        ({"kind": "burn", "service": "ocr-worker", "name": "ocr-in-time"}, "worker-crash-loop"),
        ({"kind": "burn", "service": "payroll", "name": "payroll"}, ""),
    ],
)
def test_an_alert_leads_to_its_runbook(alert, slug):
    assert runbooks.find_slug(**alert) == slug


def test_no_runbook_has_no_address():
    assert runbooks.page_path("") == ""
    assert runbooks.page_path("redis-down") == "/runbooks/redis-down/"


@pytest.mark.parametrize(
    ("console", "address"),
    [("", ""), ("https://ops.example.org", "https://ops.example.org")],
)
def test_messages_lead_to_the_console_if_it_is_known_where_that_is(settings, console, address):
    settings.PUBLIC_URL = console

    assert runbooks.link_address("redis-down") == f"{address}/runbooks/redis-down/"
    assert runbooks.link_address("") == ""
