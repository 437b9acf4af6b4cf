"""The kind of gates that breakers answer."""

from breakers import gates
from controlplane.core.gates.kinds import GATE_KINDS

GATE_KINDS.register(gates.KIND)
