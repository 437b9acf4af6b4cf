"""The kinds of gates that core answers; importing their modules registers them."""

from controlplane.core.gates import external, samples

__all__ = ["external", "samples"]
