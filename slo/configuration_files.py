"""Registration of `slo.yaml` as a configuration file."""

from controlplane.core.configuration import services as configuration
from slo.objectives import samples
from slo.objectives.slo_file import FILE, load_slo_file

configuration.READERS.register(
    configuration.Reader(
        "slo",
        (FILE,),
        load_slo_file,
        {"SLO": "SLOs"},
        samples.list_samples,
        samples.remove_samples,
    )
)
