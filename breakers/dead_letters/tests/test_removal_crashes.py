"""Processes that retry and discard letters are killed: each letter left once, or is there still."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.conf import settings as given
from django.db import connection

from breakers.dead_letters import intent_sweeper
from breakers.dead_letters.letters import ids
from breakers.dead_letters.models import Departure, Letter
from controlplane.core.clock import db_now

from .heaps import heap
from .removal_helpers import audited, dead, origin

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]
LETTERS, LIVES = 600, 8


def environment(heap_):
    found = connection.settings_dict
    login = f"{quote(str(found['USER']))}:{quote(str(found['PASSWORD']))}"
    place = f"{found['HOST']}:{found['PORT'] or 5432}"
    url = f"postgresql://{login}@{place}/{found['NAME']}"
    pattern = f"{heap_.prefix}:dlq:{{stream}}={heap_.prefix}:{{stream}}"
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "DATABASE_URL": url,
        "DATABASE_OWNER_URL": f"{url}?application_name=owner",
        "REDIS_URL": given.REDIS_URL,
        "SECRET_KEY": given.SECRET_KEY,
        "DLQ_PATTERNS": pattern,
    }


def operator(heap_, entry_ids):
    code = [sys.executable, "-m", "breakers.dead_letters.tests.operator_process"]
    process = subprocess.Popen(
        [*code, heap_.name(), *entry_ids],
        env=environment(heap_),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    return process


def test_operators_that_are_killed_leave_each_letter_once_or_where_it_was(settings):
    chance = random.Random(7)
    with heap(settings) as letters:
        added = letters.fill(LETTERS)
        for _ in range(LIVES // 2):
            # Two at a time, at the same letters.
            some = dead(letters)
            lives = [operator(letters, some), operator(letters, some)]
            time.sleep(chance.uniform(0.1, 0.8))
            for process in lives:
                process.kill()
                process.communicate()

        open_intents = Departure.objects.filter(state="intended").count()
        settled = intent_sweeper.sweep_intents(db_now() + timedelta(minutes=1))

        sent = Counter(fields[b"dlq_retry_of"].decode() for _, fields in origin(letters))
        archived = list(Departure.objects.values_list("position", "action", "state"))
        by_action = {
            action: {ids.to_entry_id(position) for position, what, _ in archived if what == action}
            for action in ("retry", "discard")
        }
        still = set(dead(letters))
        assert settled == open_intents
        assert {state for *_, state in archived} == {"done"}
        assert set(sent.values()) == {1}
        assert set(sent) == by_action["retry"]
        assert not by_action["retry"] & by_action["discard"]
        assert still | by_action["retry"] | by_action["discard"] == set(added)
        assert not still & (by_action["retry"] | by_action["discard"])
        assert len(archived) == len(audited())
        left = {ids.to_position(one) for one in by_action["retry"] | by_action["discard"]}
        assert not Letter.objects.filter(position__in=left).exists()
        assert len(archived) > LIVES
