"""Registration of the registry's configuration files."""

from breakers.policies.configuration import FILES
from controlplane.core.configuration.readers import READERS, Reader

from .services import configuration_export, configuration_loader, configuration_schemas, samples

READERS.register(
    Reader(
        name="breakers",
        position=10,
        files=FILES,
        load=configuration_loader.load_files,
        export=configuration_export.export_documents,
        schemas=configuration_schemas.build_schemas,
        kinds={"dependency": "dependencies", "service": "services", "channel": "event channels"},
        list_samples=samples.list_samples,
        remove_samples=samples.remove_samples,
    )
)
