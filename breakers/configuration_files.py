"""Registers the loader of this app's configuration files."""

from breakers.policies.configuration import FILES
from controlplane.core.configuration import services as configuration

from .services import configuration_loader, samples

configuration.READERS.register(
    configuration.Reader(
        "breakers",
        FILES,
        configuration_loader.load_files,
        {"dependency": "dependencies", "service": "services", "channel": "event channels"},
        samples.list_samples,
        samples.remove_samples,
    )
)
