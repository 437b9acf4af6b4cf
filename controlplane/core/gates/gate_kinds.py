from . import external, samples
from .kinds import GATE_KINDS

GATE_KINDS.register(external.KIND, samples.KIND)
