"""Notify's retention rules stand in the rooms they are about; importing those registers them."""

from controlplane.core.interactions import services  # noqa: F401
