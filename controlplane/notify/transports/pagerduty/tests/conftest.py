from controlplane.notify.transports.tests.fake_on_call_service import on_call_service

__all__ = ["on_call_service"]
