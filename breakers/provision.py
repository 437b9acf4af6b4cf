"""Provisioning of a new installation with the shipped configuration folder."""

from datetime import datetime

from controlplane.core import provision
from controlplane.core.configuration import services as configuration

from .services import configuration_loader


@provision.first_step
def load_once(now: datetime) -> None:
    """Load the shipped configuration if nothing was ever registered."""
    if configuration_loader.is_registry_empty():
        configuration.load_shipped("breakers", actor=provision.ACTOR, now=now)
