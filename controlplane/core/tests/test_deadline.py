"""A write whose request has timed out is rolled back."""

import time

import pytest
from django.db import transaction

from controlplane.core import deadline
from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Unavailable


def write():
    with transaction.atomic():
        audit.record(actor=system_actor("test"), action="a.b", target="t", now=db_now())


@pytest.mark.django_db
def test_past_the_deadline_nothing_is_written():
    with deadline.limit_writes(time.monotonic() - 1), pytest.raises(Unavailable):
        write()

    assert not AuditEntry.objects.exists()


@pytest.mark.django_db
def test_before_it_without_one_and_after_it_has_gone_everything_is():
    with deadline.limit_writes(time.monotonic() + 60):
        write()
    with deadline.limit_writes(None):
        write()
    write()

    assert AuditEntry.objects.count() == 3
