"""Provisioning: a new installation starts with the objectives of `config/slo.yaml`."""

from datetime import datetime

from controlplane.core import provision
from controlplane.core.configuration import services as configuration
from slo.objectives import file_loader


@provision.first_step
def load_once(now: datetime) -> None:
    """Load the shipped file if there never was an SLO."""
    if file_loader.has_no_slos():
        configuration.load_shipped("slo", actor=provision.ACTOR, now=now)
