"""Registration of `slo.yaml` as a configuration file."""

from controlplane.core.configuration import services as configuration
from slo.objectives import slo_file
from slo.objectives.slo_file import FILE

configuration.register("slo", configuration.Reader((FILE,), slo_file.load_slo_file))
