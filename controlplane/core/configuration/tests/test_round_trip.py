"""Exports: loading one changes nothing, and an empty installation exports the same after it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakers.models import Channel, Dependency, Service
from controlplane.accounts.models.people import User
from controlplane.core import provision
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.configuration import services as configuration
from controlplane.core.configuration.files import parse_document
from controlplane.core.configuration.readers import CHANGED, NEW
from controlplane.core.configuration.yaml_writer import write_document
from controlplane.core.roles import SCOPES_OF, Role
from controlplane.notify.models.targets import EscalationStep, OnCallMember, Route, Target
from slo.models import Slo, ThresholdRule
from switches.models import DrillSchedule, Rule, Switch, TripPolicy

from .whole_installation import TEXTS, load, read

pytestmark = pytest.mark.django_db


def fill():
    """Load an installation with every kind of entry, and approve its safety rules."""
    User.objects.create_user("kim", "correct horse battery", role="operator")
    configuration.load_shipped(actor=provision.ACTOR, now=db_now())
    load(TEXTS)
    approve_rules()


def approve_rules():
    person = User.objects.filter(username="ada").first() or User.objects.create_user(
        "ada", "correct horse battery", role="admin"
    )
    for request in Approval.objects.filter(state="pending"):
        actor = Actor("user", "ada", person.pk, role=Role.ADMIN, scopes=SCOPES_OF[Role.ADMIN])
        approvals.approve(request.pk, comment="as agreed in the review", actor=actor, now=db_now())


def empty():
    for model in (
        Dependency, Service, Channel, Slo, ThresholdRule, DrillSchedule, Switch, Rule, TripPolicy,
        Route, EscalationStep, OnCallMember, Target,
    ):  # fmt: skip
        model.objects.all().delete()


def test_loaded_export_changes_nothing():
    fill()
    texts = configuration.export_texts()
    rows = AuditEntry.objects.count()

    loaded = load(texts)

    assert loaded.count(NEW, CHANGED) == 0
    assert loaded.elsewhere == ()
    assert AuditEntry.objects.count() == rows
    assert configuration.export_texts() == texts


def test_empty_installation_exports_the_same_after_loading():
    fill()
    texts = configuration.export_texts()
    empty()
    assert configuration.export_texts() != texts

    load(texts)
    approve_rules()

    assert configuration.export_texts() == texts


def test_export_has_every_entry_of_the_files():
    fill()

    exported = configuration.export_texts()

    for name, text in TEXTS.items():
        document, found = read(name, text), read(name, exported[name])
        for part, entries in document.items():
            if isinstance(entries, dict):
                assert entries.keys() <= found[part].keys(), name
            else:
                assert len(entries) <= len(found[part]), name


printable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | numbers | printable,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(printable, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(printable, values, max_size=4))
def test_written_document_is_read_back_the_same(document):
    errors = {}

    found = parse_document("x.yaml", write_document("x.yaml", document), errors)

    assert not errors
    assert found == document
