"""Two who read the same stream into the index at the same time."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.db.models import Sum

from breakers.dead_letters.finding import indexing, streams
from breakers.models.dead_letters import GroupDay, Letter
from breakers.tests.dead_letters.heaps import heap
from breakers.tests.fleet import NOW

pytestmark = pytest.mark.django_db(transaction=True)


def test_each_letter_is_counted_once_whoever_reads_it(settings):
    with heap(settings) as letters:
        letters.fill(6000)
        name = letters.stream().name

        def read(_):
            try:
                stream = streams.find("default", name, NOW)
                while not indexing.catch_up(stream, NOW, seconds=0.05):
                    pass
            finally:
                connection.close()

        with ThreadPoolExecutor(3) as threads:
            list(threads.map(read, range(3)))

        stream = letters.stream()
        assert Letter.objects.filter(stream=stream).count() == 6000
        assert (stream.arrived_total, stream.vanished_total) == (6000, 0)
        assert GroupDay.objects.aggregate(arrived=Sum("arrived"))["arrived"] == 6000
