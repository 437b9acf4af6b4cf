"""Registration of `slo.yaml` as a configuration file."""

from controlplane.core.configuration import services as configuration
from slo.objectives import file_loader
from slo.objectives.slo_file import FILE

configuration.register("slo", configuration.Reader((FILE,), file_loader.load_slo_file))
