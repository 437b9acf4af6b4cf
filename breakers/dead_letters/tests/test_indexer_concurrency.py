"""Several who work on the same stream at the same time."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connection, transaction
from django.db.models import Sum

from breakers.dead_letters.models import GroupDay, Letter, LetterStream
from breakers.dead_letters.monitoring import indexer, sampler, streams
from breakers.tests.fleet import NOW, SECOND

from .heaps import heap

pytestmark = pytest.mark.django_db(transaction=True)


def test_each_letter_is_counted_once_whoever_reads_it(settings):
    with heap(settings) as letters:
        letters.fill(6000)
        name = letters.stream().name

        def read(_):
            try:
                stream = streams.find_stream("default", name, NOW)
                while not indexer.catch_up(stream, NOW, seconds=0.05):
                    pass
            finally:
                connection.close()

        with ThreadPoolExecutor(3) as threads:
            list(threads.map(read, range(3)))

        stream = letters.stream()
        assert Letter.objects.filter(stream=stream).count() == 6000
        assert (stream.arrived_total, stream.vanished_total) == (6000, 0)
        assert GroupDay.objects.aggregate(arrived=Sum("arrived"))["arrived"] == 6000


def test_a_stream_that_another_works_on_keeps_no_other_waiting(settings):
    with heap(settings) as letters, ThreadPoolExecutor(1) as thread:
        for of in ("events", "busy"):
            letters.fill(1, to=of)
        sampler.sample_servers(NOW)
        for of in ("events", "busy"):
            letters.fill(1, to=of, start=2)
        held, enough = Event(), Event()

        def hold():
            with transaction.atomic():
                LetterStream.objects.select_for_update().get(name=letters.name("busy"))
                held.set()
                enough.wait(10)
            connection.close()

        holding = thread.submit(hold)
        held.wait(10)

        sampler.sample_servers(NOW + SECOND)
        depths = [letters.stream(of).depth for of in ("events", "busy")]
        enough.set()
        holding.result()
        sampler.sample_servers(NOW + 2 * SECOND)

        assert depths == [2, 1]
        assert letters.stream("busy").depth == 2
