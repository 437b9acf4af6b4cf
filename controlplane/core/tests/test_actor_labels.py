"""An actor has one name: in labels, in the audit trail, and in searches."""

import pytest

from controlplane.core.actors import Actor, label_of, system_actor
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role

ACTORS = (system_actor("shell:kim"), system_actor("ramps"), Actor(type="user", name="kim"))
LABELS = ("shell:kim", "system:ramps", "user:kim")


def test_label_is_the_same_from_an_actor_and_from_a_row():
    assert tuple(one.label for one in ACTORS) == LABELS
    assert tuple(label_of(one.type, one.name) for one in ACTORS) == LABELS


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("shell:kim", {"shell:kim"}),
        ("system:shell:kim", {"shell:kim"}),
        ("user:kim", {"user:kim"}),
        ("kim", {"user:kim"}),
        ("system:ramps", {"system:ramps"}),
    ],
)
def test_audit_finds_an_actor_by_its_label_on_the_api_and_on_the_page(query, found):
    for actor in ACTORS:
        audit.record(actor=actor, action="test.acted", target=actor.label, now=db_now())
    admin = as_role("admin")

    rows = admin.get("/audit/", {"actor": query, "action": "test.acted"}).json()["results"]
    page = admin.client.get("/audit/", {"actor": query, "action": "test.acted"}).content.decode()

    assert {label_of(**row["actor"]) for row in rows} == found
    assert {label for label in LABELS if f">{label}<" in page} == found
