"""Registration of `slo.yaml` and `thresholds.yaml` as configuration files."""

from dataclasses import replace

from controlplane.core.configuration.readers import READERS, build_reader
from slo.objectives import configuration as slos
from slo.objectives import samples
from slo.thresholds import configuration as thresholds

READERS.register(
    replace(
        build_reader(slos, 20, {"SLO": "SLOs"}),
        list_samples=samples.list_samples,
        remove_samples=samples.remove_samples,
    ),
    build_reader(thresholds, 30, {"threshold rule": "threshold rules"}),
)
