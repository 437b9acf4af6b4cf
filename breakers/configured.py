"""Which files of a configuration folder are read here."""

from breakers.policies.configuration import FILES
from breakers.services import loading
from controlplane.core.configuration import services as configuration

configuration.register("breakers", configuration.Reader(FILES, loading.load))
