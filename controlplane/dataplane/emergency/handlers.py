"""Request handlers of emergency orders."""

from controlplane.core.errors import DomainError
from controlplane.dataplane.serving import responses
from controlplane.dataplane.serving.call import Call, drain_body
from controlplane.dataplane.serving.responses import Response
from controlplane.dataplane.state import State
from switches.emergency.orders import order_document

from .authorization import SCOPE, Authorizer
from .order_list import build_page
from .service import ACCEPTED, EmergencyOrders

READING_SCOPES = ("switches:read", SCOPE)


class EmergencyEndpoints:
    """Handlers of emergency orders."""

    def __init__(self, service: EmergencyOrders, authorizer: Authorizer) -> None:
        self._service = service
        self._authorizer = authorizer

    async def emergency_orders(self, state: State, call: Call) -> Response:
        """Accept an order (POST), or return the orders that are open or withdrawn (GET)."""
        if call.method != "POST":
            await self._authorizer.identify(call, *READING_SCOPES)
            page = build_page(state, self._service, call)
            return responses.answer_json(200, page, responses.NO_STORE)
        try:
            by = await self._authorizer.identify(call, SCOPE)
        except DomainError:
            await drain_body(call.receive)
            raise
        await call.read_body()
        accepted = await self._service.accept(responses.parse_object(call.body), by)
        content = {
            **order_document(accepted.order),
            "accepted_by": accepted.accepted_by,
            "planes": accepted.planes,
        }
        return responses.answer_json(ACCEPTED, content, responses.NO_STORE)
