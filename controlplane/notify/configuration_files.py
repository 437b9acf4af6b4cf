"""Registration of `targets.yaml` as a configuration file."""

from controlplane.core.configuration.readers import READERS, Reader
from controlplane.notify.targets import configuration

READERS.register(
    Reader(
        name="targets",
        position=40,
        files=(configuration.FILE,),
        load=configuration.load_file,
        export=configuration.export_documents,
        schemas=lambda: {configuration.FILE: configuration.build_schema()},
        kinds={"target": "targets", "route": "routes"},
    )
)
