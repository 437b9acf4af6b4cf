"""Provisioning: a new installation starts with the objectives of `config/slo.yaml`."""

from datetime import datetime

from controlplane.core import provision
from controlplane.core.configuration import services as configuration
from slo.models import Slo


@provision.first_step
def load_shipped_file(now: datetime) -> None:
    """Load `config/slo.yaml`, unless the installation has SLOs or had some."""
    if not Slo.objects.exists():
        configuration.load_shipped("slo", actor=provision.ACTOR, now=now)
