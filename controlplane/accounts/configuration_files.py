"""Registration of `teams.yaml` as a configuration file."""

from controlplane.accounts.teams import configuration
from controlplane.core.configuration.readers import READERS, build_reader

# First, as the lock of the teams is taken before others, and as targets name contacts of teams.
READERS.register(
    build_reader(configuration, 5, {"team": "teams", "authority rule": "authority rules"})
)
