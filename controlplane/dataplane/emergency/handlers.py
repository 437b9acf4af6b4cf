"""Request handlers of emergency orders."""

from controlplane.core.errors import Unauthenticated
from controlplane.dataplane.memory.credentials import authenticate
from controlplane.dataplane.serving import responses
from controlplane.dataplane.serving.call import Call
from controlplane.dataplane.serving.responses import Response
from controlplane.dataplane.state import State
from switches.emergency.orders import Orderer, order_document

from .service import EmergencyOrders

SCOPE = "switches:emergency"
READING_SCOPES = ("switches:read", SCOPE)


class EmergencyEndpoints:
    """Handlers of emergency orders, and the authorization of their callers."""

    def __init__(self, service: EmergencyOrders) -> None:
        self._service = service

    async def authorize(self, state: State, call: Call) -> None:
        """Raise unless the caller may give orders, or read them if that is the request."""
        reads = call.method != "POST"
        scopes = READING_SCOPES if reads else (SCOPE,)
        call.credential = authenticate(state.tokens, call.headers, *scopes, clock=state.unix)
        state.used_tokens.add(call.credential.token_id)

    async def emergency_orders(self, state: State, call: Call) -> Response:
        """Accept an order (POST), or return the orders that are open or withdrawn (GET)."""
        if call.method != "POST":
            return self._list_orders(state)
        request = responses.parse_object(call.body)
        if call.credential is None:
            raise Unauthenticated("Send an API token.")
        by = Orderer("token", call.credential.name, call.credential.token_id)
        accepted = await self._service.accept(request, by)
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
