"""Each message about something that a team may own names it, so that the owner is notified."""

import ast
from pathlib import Path

from django.conf import settings

CALLS = ("announce", "open_escalation")
APPS = ("breakers", "controlplane", "slo", "switches")
WITHOUT = {
    # Messages to one person, and replies to a press of a button.
    "controlplane/accounts/authentication/resets.py": 1,
    "controlplane/accounts/emergency_codes/services.py": 1,
    "controlplane/notify/interactions/services.py": 1,
    "controlplane/notify/targets/services.py": 1,
    # About the installation as a whole.
    "controlplane/core/audit/services.py": 1,
    "controlplane/core/degradation/services.py": 1,
    "controlplane/core/fleet/alarms.py": 2,
    "controlplane/core/jobs/alarms.py": 2,
    "controlplane/notify/delivery/backlog.py": 2,
    "switches/report/services.py": 3,
    "switches/trips/policies.py": 1,
    # To destinations that know the incident already, and to those of a part.
    "controlplane/core/escalations/services.py": 1,
    "controlplane/core/outbox/services.py": 1,
}


def test_no_other_callers_leave_the_resource_out():
    base, found = Path(settings.BASE_DIR), {}
    for app in APPS:
        for path in sorted((base / app).rglob("*.py")):
            if "tests" in path.parts:
                continue
            count = sum(map(is_without_resource, ast.walk(ast.parse(path.read_text()))))
            if count:
                found[str(path.relative_to(base))] = count
    beyond = {path: count for path, count in found.items() if count > WITHOUT.get(path, 0)}
    assert beyond == {}


def is_without_resource(node):
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    keywords = [one.arg for one in node.keywords]
    # Others of these names have positional arguments; `**fields` are looked at by people.
    return name in CALLS and "event" in keywords and not {"resource", None} & set(keywords)
