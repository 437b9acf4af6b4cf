"""Provisioning: a new installation starts with the objectives of `config/slo.yaml`."""

from datetime import datetime

from controlplane.core import provision
from controlplane.core.configuration import services as configuration
from slo.objectives import slo_file


@provision.first_step
def load_shipped_file(now: datetime) -> None:
    """Load the shipped `slo.yaml` unless there are, or were, SLOs."""
    if slo_file.has_no_slos():
        configuration.load_shipped("slo", actor=provision.ACTOR, now=now)
