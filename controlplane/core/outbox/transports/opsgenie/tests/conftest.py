from controlplane.core.outbox.transports.tests.fake_on_call_service import (
    on_call_service,  # noqa: F401
)
