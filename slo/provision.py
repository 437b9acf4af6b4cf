"""Provisioning: a new installation starts with the objectives of `config/slo.yaml`."""

from datetime import datetime

from controlplane.core import provision
from controlplane.core.configuration import services as configuration
from slo.models import Slo


@provision.first_step
def load_shipped_file(now: datetime) -> None:
    """Load the shipped `slo.yaml` unless there are, or were, SLOs."""
    if not Slo.objects.exists():
        configuration.load_shipped("slo", actor=provision.ACTOR, now=now)
