"""An approval that expires while its switch is released, without a deadlock."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction

from controlplane.core.actors import system_actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from switches import publication, services

ACTOR = system_actor("test")


@pytest.mark.django_db(transaction=True)
def test_running_out_waits_its_turn_behind_a_change_of_the_switch():
    now = db_now()
    services.engage(
        scope="segment",
        key="finance",
        reason="card payments charged twice",
        expires_in="permanent",
        actor=ACTOR,
        now=now,
    )
    later = now + timedelta(days=2)
    closed = []

    def run_out():
        try:
            closed.append(approvals.expire_due_requests(later))
        finally:
            connection.close()

    other = threading.Thread(target=run_out)
    with transaction.atomic():
        publication.lock()
        audit.record(actor=ACTOR, action="thing.done", target="segment:finance", now=now)
        other.start()
        other.join(0.5)
        waiting = Approval.objects.select_for_update(nowait=True).get()
        assert waiting.state == "pending"
    other.join(10)

    assert closed == [1]
    assert Approval.objects.get().state == "expired"
