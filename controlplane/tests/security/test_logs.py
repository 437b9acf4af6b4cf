"""Input can't forge log lines or terminal colors."""

import logging
import logging.config
from urllib.parse import quote

import orjson
import pytest
import structlog
from django.conf import settings
from django.test import Client

from controlplane.core.http.tests.callers import browser_of, person

FORGED = 'x\r\n{"level":"info","event":"switch.released"}\x1b[2J\x1b]0;pwned\x07\u2028\x85'


@pytest.fixture
def lines():
    """The log as a process writes it, as it grows."""
    config = settings.LOGGING["formatters"]["json"]
    formatter = logging.config.DictConfigurator({}).configure_formatter({**config})
    written = []

    class Kept(logging.Handler):
        def emit(self, record):
            written.append(formatter.format(record))

    handler = Kept()
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


@pytest.mark.django_db
def test_a_request_that_forges_lines_writes_one_object_a_line(lines):

    client = browser_of(person("operator", FORGED[:40].replace("\x85", "")))
    client.post(f"/{quote(FORGED)}/", headers={"user-agent": FORGED.replace("\r\n", " ")})
    client.post(f"/api/v1/switches/segment/{quote(FORGED)}/engage", {}, "application/json")
    Client().post("/sign-in/", {"username": FORGED, "password": FORGED})
    client.get("/", headers={"x-request-id": "x y\x1b[31m"})

    assert lines
    for line in lines:
        assert isinstance(orjson.loads(line), dict)
        assert not any(ord(letter) < 32 or ord(letter) == 127 for letter in line), line


def test_level_and_event_begin_a_line_even_if_it_is_long(lines):
    structlog.get_logger("tests").error("import.failed", document="x" * 9_000)

    assert lines[0].startswith('{"level": "error", "event": "import.failed", ')


@pytest.mark.django_db
def test_passwords_tokens_and_queries_are_in_no_line(lines):
    secret = "sg_abc123_ThisIsNoRealSecretButLooksLikeOne"
    client = Client(raise_request_exception=False)

    client.post("/sign-in/", {"username": "kim", "password": "hunter2-hunter2"})
    client.post("/api/v1/switches/trip", {}, headers={"authorization": f"Bearer {secret}"})
    client.post(f"/api/v1/switches/trip?api_key={secret}", {}, headers={"x-api-key": secret})

    text = "\n".join(lines)
    assert "request.finished" in text
    assert "hunter2" not in text
    assert secret not in text
