"""Registration of `slo.yaml` and `thresholds.yaml` as configuration files."""

from controlplane.core.configuration.readers import READERS, Reader
from slo.objectives import samples, slo_file, slo_file_export
from slo.thresholds import configuration as thresholds

READERS.register(
    Reader(
        name="slo",
        position=20,
        files=(slo_file.FILE,),
        load=slo_file.load_slo_file,
        export=slo_file_export.export_documents,
        schemas=lambda: {slo_file.FILE: slo_file_export.build_schema()},
        kinds={"SLO": "SLOs"},
        list_samples=samples.list_samples,
        remove_samples=samples.remove_samples,
    ),
    Reader(
        name="thresholds",
        position=30,
        files=(thresholds.FILE,),
        load=thresholds.load_file,
        export=thresholds.export_documents,
        schemas=lambda: {thresholds.FILE: thresholds.build_schema()},
        kinds={"threshold rule": "threshold rules"},
    ),
)
