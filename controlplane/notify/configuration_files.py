"""Registration of `targets.yaml` as a configuration file."""

from controlplane.core.configuration.readers import READERS, build_reader
from controlplane.notify.targets import configuration, contact_entries

READERS.register(
    build_reader(
        configuration,
        40,
        {"target": "targets", "route": "routes", contact_entries.KIND: "teams with contacts"},
    )
)
