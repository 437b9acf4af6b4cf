"""Tests of the order of locks: no stop waits for a change of teams, and no load deadlocks."""

import threading
from functools import partial

import pytest
from django.db import connection, transaction

from controlplane.accounts.teams.storage import lock_teams
from controlplane.core.actors import system_actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.services import CHAIN_LOCK
from controlplane.core.clock import db_now
from controlplane.core.configuration import services as loading
from controlplane.core.configuration.readers import LoadOptions
from controlplane.core.sql import fetch_all
from switches import publication, services
from switches.models import Publication, Ramp
from switches.ramps import actions

from .teams import People

pytestmark = pytest.mark.django_db(transaction=True)
SHELL = system_actor("test")
WHY = "5xx below 0.1 % for twenty minutes"
TEAMS = "teams: {ledger: {name: Ledger, parent: root}}"
SWITCHES = "switches: {segment:finance: {description: Card payments}}"


@pytest.fixture
def people():
    return People()


class Waiting(threading.Thread):
    """A thread that calls a function, which has to wait for the locks of the caller."""

    def __init__(self, function, **arguments):
        super().__init__()
        self._call = partial(function, **arguments)
        self.errors = []
        self.start()
        self.join(0.3)  # Sessions that block others without progress for half a second are ended.
        assert self.is_alive(), self.errors

    def run(self):
        try:
            self._call()
        except Exception as error:
            self.errors.append(error)
        finally:
            connection.close()

    def require_success(self):
        self.join(10)
        assert not self.is_alive()
        assert not self.errors


def engage(key, actor):
    services.engage(
        scope="segment", key=key, reason="payments charged twice", expires_in="4h", actor=actor,
        now=db_now(),
    )  # fmt: skip


def release(actor, ask=False):
    return services.release(
        scope="segment", key="finance", justification=WHY, ask=ask, actor=actor, now=db_now()
    )


def approve(actor):
    approval = Approval.objects.get()
    approvals.approve(approval.pk, comment="Looks good.", actor=actor, now=db_now())


def resume(actor):
    ramp = Ramp.objects.get()
    actions.resume(ramp_id=ramp.pk, reason=WHY, actor=actor, now=db_now())


def _prepare_release(people):
    return release, people.member


def _prepare_approval(people):
    release(people.member.as_actor(), ask=True)
    return approve, people.lead


def _prepare_resume(people):
    ramp = release(people.member.as_actor()).ramp
    actions.pause(ramp_id=ramp.pk, reason=WHY, actor=people.member.as_actor(), now=db_now())
    return resume, people.member


def _prepare_description(people):
    change = {
        "scope": "segment",
        "key": "finance",
        "changes": {"description": "Cards"},
        "now": db_now(),
    }
    return partial(services.describe, **change), people.member


@pytest.mark.parametrize(
    "prepare", [_prepare_release, _prepare_approval, _prepare_resume, _prepare_description]
)
def test_who_stops_does_not_wait_for_a_change_of_teams(people, prepare):
    engage("finance", SHELL)
    start, person = prepare(people)

    with transaction.atomic():
        lock_teams(to_change=True)
        waiting = Waiting(start, actor=person.as_actor())
        Publication.objects.select_for_update(nowait=True).get()
        engage("other", people.stranger.as_actor())

    waiting.require_success()


@pytest.mark.parametrize("by", ["shell", "admin"])
def test_a_load_of_teams_and_switches_locks_the_trail_last(people, by):
    actor = SHELL if by == "shell" else people.admin.as_actor()
    texts = {"teams.yaml": TEAMS, "switches.yaml": SWITCHES}
    options = LoadOptions(actor=actor, now=db_now())

    with transaction.atomic():
        publication.lock()
        waiting = Waiting(loading.load_texts, texts=texts, options=options)
        ((is_free,),) = fetch_all("SELECT pg_try_advisory_xact_lock(%s)", [CHAIN_LOCK])

    assert is_free
    waiting.require_success()
    assert Approval.objects.count() == (0 if by == "shell" else 1)
