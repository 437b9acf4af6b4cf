"""Prometheus metrics of dead letters."""

import pytest

from breakers.dead_letters import metrics
from breakers.dead_letters.models import LetterServer, LetterStream
from breakers.dead_letters.monitoring import sampler
from breakers.tests.fleet import NOW
from breakers.tests.test_metrics import read_samples

from .heaps import heap

pytestmark = pytest.mark.django_db


def test_streams_are_told_by_name_with_their_server_unless_it_is_the_default(settings):
    sources = settings.DEAD_LETTERS
    url = sources.servers["default"]
    with heap(settings, servers={"default": url, "billing": url}) as letters:
        letters.fill(3)
        sampler.sample_servers(NOW)
        LetterStream.objects.filter(server="billing").update(retried_total=7, alarmed_at=NOW)

        samples = read_samples(metrics.dead_letters)

        name, elsewhere = letters.name(), f"billing/{letters.name()}"
    assert samples["switchgear_dlq_depth", name] == 3
    assert samples["switchgear_dlq_messages_total", name] == 3
    assert samples["switchgear_dlq_reprocessed_total", elsewhere] == 7
    assert samples["switchgear_dlq_vanished_total", name] == 0
    alerting = [samples["switchgear_dlq_alerting", one] for one in (name, elsewhere)]
    assert alerting == [0, 1]


def test_a_server_that_is_away_is_not_up():
    LetterServer.objects.create(name="default")
    LetterServer.objects.create(name="billing", is_away=True)

    samples = read_samples(metrics.dead_letters)

    assert samples["switchgear_dlq_server_up", "default"] == 1
    assert samples["switchgear_dlq_server_up", "billing"] == 0
