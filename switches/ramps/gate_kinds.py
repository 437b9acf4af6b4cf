"""Registration of the manual gate kind."""

from controlplane.core.gates.kinds import GATE_KINDS

from . import manual_gates

GATE_KINDS.register(manual_gates.KIND)
