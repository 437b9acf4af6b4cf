"""A change of a person waits for the audit trail without blocking that person's requests."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from controlplane.accounts.authentication import factors, resets
from controlplane.accounts.models.people import BrowserSession
from controlplane.accounts.people import services as people
from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.http.tests.sessions import until_waiting

ACTOR = system_actor("test")
NEW = "a new and long enough password"


def set_password(kim):
    people.set_password(user=kim, password=NEW, actor=ACTOR, now=db_now())


def change(kim):
    people.change_user(user=kim, display_name="Kim", actor=ACTOR, now=db_now())


def reset_factors(kim):
    factors.remove_all(user=kim, actor=ACTOR, now=db_now())


def reset_password(kim):
    link = resets.tokens.make_token(kim)
    resets.complete_reset(user=kim, token=link, password=NEW, actor=ACTOR, now=db_now())


def alone(action, user):
    try:
        action(user)
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("action", [set_password, change, reset_factors, reset_password])
def test_row_that_names_a_person_commits_while_they_are_changed(action):
    kim = person("admin", "kim")
    now = db_now()

    with ThreadPoolExecutor() as threads:
        with transaction.atomic():
            audit.record(actor=ACTOR, action="switch.engaged", target="feature:a", now=now)
            changing = threads.submit(alone, action, kim)
            until_waiting(1)
            # The foreign key is checked at the commit, when the trail is locked already.
            BrowserSession.objects.create(
                session_key="k", user=kim, expire_date=now, started_at=now, last_seen_at=now
            )
        changing.result()

    assert BrowserSession.objects.filter(session_key="k").exists() is (action is change)
