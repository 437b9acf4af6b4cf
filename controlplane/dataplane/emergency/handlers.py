"""Request handlers of emergency orders."""

from controlplane.core.errors import DomainError
from controlplane.dataplane.serving import responses
from controlplane.dataplane.serving.call import Call, drain_body
from controlplane.dataplane.serving.responses import Response
from controlplane.dataplane.state import State
from switches.emergency.orders import order_document

from .authorization import SCOPE, Authorizer
from .service import EmergencyOrders

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
            return self._list_orders(state)
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
        return responses.answer_json(201, content, responses.NO_STORE)

    def _list_orders(self, state: State) -> Response:
        results = [
            {
                **order_document(order),
                "state": "withdrawn" if order.id in state.orders.withdrawn else "open",
                "planes": sorted(self._service.holders(order.id)),
            }
            for order in state.orders.unclosed.values()
            if order.withdraws is None
        ]
        return responses.answer_json(200, {"results": results}, responses.NO_STORE)
