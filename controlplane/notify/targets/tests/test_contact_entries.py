"""Contacts of teams in the configuration file `targets.yaml`."""

import json

import pytest

from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.configuration import services
from controlplane.core.configuration.readers import CHANGED, SAME, LoadOptions
from controlplane.core.errors import InvalidInput
from controlplane.notify.models import TeamContact

from .people import an_admin

pytestmark = pytest.mark.django_db

FILE = """
targets:
  pat: {kind: person, email: pat@example.org}
  "#pay": {kind: channel, address: "slack:#pay"}
contacts:
  payments: {on_call: pat, channels: ["#pay"]}
"""


@pytest.fixture
def load():
    """Return a function that loads `targets.yaml`, and returns the outcomes of contacts."""
    admin = an_admin()

    def run(text, **options):
        loaded = services.load_texts(
            {"targets.yaml": text}, LoadOptions(actor=admin, now=db_now(), **options)
        )
        changes = {
            one.name: one.outcome for one in loaded.changes if one.kind == "team with contacts"
        }
        return changes, loaded.remarks

    return run


def list_contacts():
    return list(TeamContact.objects.order_by("kind").values_list("kind", "target__name"))


def test_contacts_are_set_once_with_an_audit_row(load):
    create_team("payments")

    assert load(FILE)[0] == {"payments": CHANGED}
    assert load(FILE)[0] == {"payments": SAME}

    assert list_contacts() == [("channel", "#pay"), ("on_call", "pat")]
    row = AuditEntry.objects.get(action="team.contacts_changed")
    assert json.loads(row.after) == {"on_call": "pat", "channels": ["#pay"], "escalation": None}


def test_dry_run_changes_nothing(load):
    create_team("payments")

    assert load(FILE, dry_run=True)[0] == {"payments": CHANGED}

    assert list_contacts() == []


def test_export_loads_again_without_change(load):
    create_team("payments")
    load(FILE)

    text = services.export_texts()["targets.yaml"]

    assert "contacts:" in text
    assert load(text)[0] == {"payments": SAME}


def test_export_without_contacts_leaves_them_out(load):
    create_team("payments")

    assert "contacts" not in services.export_texts()["targets.yaml"]


def test_missing_team_is_an_error_and_a_remark_in_a_dry_run(load):
    assert load(FILE, dry_run=True)[1] == (
        "targets.yaml: the team payments must be created before.",
    )
    with pytest.raises(InvalidInput, match="no such team"):
        load(FILE)


@pytest.mark.parametrize(
    "contacts",
    [
        "{on_call: '#pay'}",
        "{channels: [pat]}",
        "{channels: pat}",
        "{pager: pat}",
        "{on_call: [pat]}",
    ],
)
def test_wrong_contacts_are_refused(load, contacts):
    create_team("payments")

    with pytest.raises(InvalidInput):
        load(FILE.replace('{on_call: pat, channels: ["#pay"]}', contacts))

    assert list_contacts() == []
