"""The kind of gates that ramps answer."""

from controlplane.core.gates.kinds import GATE_KINDS

from . import manual_gates

GATE_KINDS.register(manual_gates.KIND)
