"""Targets for tests, and people in the escalation matrix."""

from typing import Any

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.notify.models.targets import Target
from controlplane.notify.targets import services
from controlplane.notify.targets.fields import TargetRequest


def an_admin(name: str = "root") -> Any:
    return person("admin", name).as_actor()


def add(name: str, kind: str = "person", **more: Any) -> Target:
    """Create a target as an admin; a person gets an address."""
    if kind == "person" and not {"email", "user", "slack_user_id"} & more.keys():
        more["email"] = f"{abs(hash(name))}@example.org"
    target_request = TargetRequest(name=name, kind=kind, **more)
    admin = an_admin(f"admin-{Target.objects.count()}")
    target, _ = services.create_target(asked=target_request, actor=admin, now=db_now())
    return target


def fill(name: str, email: str) -> Target:
    """Put a person with an e-mail address into a target of the matrix."""
    place = Target.objects.get(name=name)
    place.kind, place.email = Target.Kind.PERSON, email
    place.save()
    return place
