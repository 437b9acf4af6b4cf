"""Which file of a configuration folder is read here."""

from controlplane.core.configuration import services as configuration
from slo.objectives import loading
from slo.objectives.configured import FILE

configuration.register("slo", configuration.Reader((FILE,), loading.load))
