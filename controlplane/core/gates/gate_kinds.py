"""Registration of the gate kinds of core: external gates and event counts."""

from . import external, samples
from .kinds import GATE_KINDS

GATE_KINDS.register(external.KIND, samples.KIND)
