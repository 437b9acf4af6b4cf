"""Creating, changing and removing SLOs: permissions, audit, and counters that stay."""

from dataclasses import replace

import pytest

from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.http.tests.callers import at_once
from controlplane.core.roles import ALL_SCOPES, Role
from slo.evaluation import objective_loader
from slo.models import Series, Sli, Slo
from slo.objectives import documents, services

from .factories import ADMIN, OPERATOR, VIEWER, counted, slo

pytestmark = pytest.mark.django_db

NAME = "core-availability"
PROMETHEUS = {"type": "prometheus", "url": "http://prom:9090", "good": "good", "total": "total"}


def put_slo(actor=ADMIN, name=NAME, **fields):
    version = fields.pop("at_version", None)
    document = {"service": "core", "target": 0.999, **fields}
    return services.put_slo(name=name, fields=document, actor=actor, now=db_now(), version=version)


def remove(actor=ADMIN, name=NAME):
    return services.remove_slo(name=name, actor=actor, now=db_now(), reason="replaced")


def last_row():
    return AuditEntry.objects.order_by("-id").first()


def test_slos_that_count_minutes_are_limited():
    put_slo()
    put_slo(name="minutes", slice_target=0.95)
    for number in range(services.MAX_SLICE_SLOS - 1):
        slo(f"minutes-{number}", slice_target=0.95)

    for refused in (NAME, "another"):
        with pytest.raises(Conflict, match="can count minutes"):
            put_slo(name=refused, slice_target=0.95)
    put_slo(name="minutes", slice_target=0.9)


def test_new_slo_has_counters_and_is_audited():
    slo = put_slo()

    assert Sli.objects.get().slo == slo
    assert slo.version == 1
    row = last_row()
    assert (row.action, row.target, row.actor_name) == ("slo.created", f"slo:{NAME}", "ada")
    assert row.before == "null"
    assert '"target":0.999' in row.after


def test_same_again_changes_nothing():
    first = put_slo()
    rows = AuditEntry.objects.count()

    again = put_slo()

    assert (again.version, again.changed_at) == (1, first.changed_at)
    assert AuditEntry.objects.count() == rows


def test_change_is_a_new_version_with_before_and_after_and_keeps_what_was_counted():
    first = put_slo()
    counted(first, [(100, 9, 10)])

    second = put_slo(target=0.99)

    assert (second.pk, second.version, second.created_at) == (first.pk, 2, first.created_at)
    assert Sli.objects.get(slo=second).last == 100
    row = last_row()
    assert row.action == "slo.changed"
    assert '"target":0.999' in row.before
    assert '"target":0.99,' in row.after


def test_what_is_stored_is_what_was_written():
    slo = put_slo(target=0.99999999, rules=[
        {"long": "1h", "short": "5m", "burn_rate": 14.4, "severity": "page"}
    ])  # fmt: skip

    slo.refresh_from_db()

    objective = objective_loader.load_objective(slo)
    assert str(objective.target) == "0.99999999"
    assert str(objective.rules[0].burn_rate) == "14.4"
    assert documents.validate(NAME, documents.to_document(slo)) == documents.to_document(slo)


def test_wrong_fields_are_named_and_nothing_is_made():
    with pytest.raises(InvalidInput) as refused:
        put_slo(target=2, window_days=0)

    assert refused.value.errors.keys() == {"target", "window_days"}
    assert not Slo.objects.exists()


@pytest.mark.parametrize(
    "actor",
    [
        OPERATOR,
        VIEWER,
        Actor(type="user", name="app", role=Role.APPROVER, scopes=ALL_SCOPES),
        Actor(type="token", name="ci", role=Role.OPERATOR, scopes=frozenset({"slo:write"})),
        Actor(type="token", name="ci", role=Role.ADMIN, scopes=frozenset({"slo:read"})),
    ],
)
def test_whoever_is_no_admin_changes_nothing(actor):
    with pytest.raises(Forbidden):
        put_slo(actor=actor)
    slo()

    with pytest.raises(Forbidden):
        remove(actor=actor)

    assert Slo.objects.present().count() == 1


@pytest.mark.parametrize(
    "actor",
    [
        system_actor("provision"),
        Actor(type="token", name="ci", role=Role.ADMIN, scopes=frozenset({"slo:write"})),
    ],
)
def test_house_and_tokens_of_admins_may(actor):
    assert put_slo(actor=actor).pk


def test_change_of_an_earlier_version_is_refused():
    put_slo()
    put_slo(target=0.99)

    with pytest.raises(Conflict, match="Someone else changed it"):
        put_slo(target=0.95, at_version=1)

    assert put_slo(target=0.95, at_version=2).version == 3


def test_removed_slo_is_not_found_and_its_name_is_free_for_one_that_begins_anew():
    old = put_slo()
    counted(old, [(100, 9, 10)])

    remove()

    with pytest.raises(NotFound):
        services.find_slo(NAME)
    assert last_row().action == "slo.removed"
    new = put_slo()
    assert new.pk != old.pk
    assert Sli.objects.get(slo=new).last is None
    with pytest.raises(NotFound):
        remove(name="nobody")


def test_other_query_begins_at_its_own_baseline_and_is_asked_anew():
    slo = put_slo(source=PROMETHEUS)
    sli = Sli.objects.get(slo=slo)
    Sli.objects.update(polled_to=7, source_error="down", source_error_since=db_now())
    for source in ("prometheus", "a1"):
        Series.objects.create(
            sli=sli, source=source, first_at=db_now(), at=db_now(), good=1, total=1
        )

    put_slo(source=PROMETHEUS, target=0.99)
    assert Series.objects.count() == 2

    put_slo(source={**PROMETHEUS, "good": "other"}, target=0.99)
    assert [one.source for one in Series.objects.all()] == ["a1"]
    sli.refresh_from_db()
    assert (sli.polled_to, sli.source_error, sli.source_error_since) == (None, "", None)


@pytest.mark.parametrize("name", ["", "a/b", "\x00", "new"])
def test_what_is_no_name_is_not_found(name):
    with pytest.raises(NotFound):
        services.find_slo(name)


@pytest.mark.django_db(transaction=True)
def test_two_who_make_the_same_at_once_make_one():
    def make(n):
        try:
            return put_slo(owner=f"team {n}").owner
        except Conflict:
            return "refused"

    outcomes = at_once(*([lambda n=n: make(n) for n in range(4)]))

    assert Slo.objects.count() == 1
    assert Slo.objects.get().owner in outcomes
    assert AuditEntry.objects.filter(action="slo.created").count() == 1


def test_role_of_the_moment_counts():
    assert put_slo(actor=replace(OPERATOR, role=Role.ADMIN)).pk
