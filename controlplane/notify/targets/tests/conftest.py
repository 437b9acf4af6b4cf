from controlplane.notify.escalation.tests.conftest import _reachable

__all__ = ["_reachable"]
