"""Request handler of the emergency page."""

from datetime import timedelta
from functools import cache, partial
from urllib.parse import urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

from controlplane.core.errors import (
    DomainError,
    Forbidden,
    InvalidInput,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from controlplane.core.protocol import EMERGENCY_PAGE
from controlplane.dataplane.config import ServingConfig
from controlplane.dataplane.emergency import order_list
from controlplane.dataplane.emergency.authorization import Authorizer
from controlplane.dataplane.emergency.service import EmergencyOrders
from controlplane.dataplane.memory.credentials import Headers
from controlplane.dataplane.serving import responses
from controlplane.dataplane.serving.call import Call, client_network
from controlplane.dataplane.serving.responses import Response
from controlplane.dataplane.state import State
from switches.emergency.orders import plan_order
from switches.scopes import GLOBAL_ID

from .facts import Installation, PageFacts, read_facts
from .form import SHOW, AmbiguousSwitch, PageForm, parse_form
from .frame import POLICY, count, render_error
from .grants import Grant, make_grant, read_grant
from .outcome import render_outcome
from .start import list_confirmations, render_confirmation, render_start

_POLICY = (b"content-security-policy", POLICY.encode())


class EmergencyPage:
    """The page of one data plane. Call :meth:`configure` before the first request."""

    def __init__(self, service: EmergencyOrders, authorizer: Authorizer) -> None:
        self._service = service
        self._authorizer = authorizer
        self.default_console_url = ""
        """The console's URL without `PUBLIC_URL`: a path if this process serves it, else ""."""
        self._installation = Installation()
        self._keys: tuple[bytes, ...] = ()

    def configure(self, config: ServingConfig) -> None:
        self._keys = config.order_keys
        self._installation = Installation(
            config.environment_name,
            config.public_url or self.default_console_url,
            ZoneInfo(config.time_zone),
        )

    async def emergency_page(self, state: State, call: Call) -> Response:
        """Return the page; or do what its sent form asks for, and return the page with the result.

        A form that is sent again gives the same order, so a reload is harmless.
        """
        if call.method != "POST":
            return _answer(200, render_start(self._read_facts(state)))
        refuse_foreign_form(call.headers, self._installation.console_url)
        form = parse_form(call.headers.get(b"content-type", b""), call.body)
        try:
            grant = await self._authorize(state, call, form)
        except DomainError as error:
            facts = self._read_facts(state)
            problems = {"code": [error.detail, *_advise_retry(facts, error)]}
            return _answer(error.status, render_start(facts, form, problems=problems), error)
        if form.action == SHOW:
            return _answer(200, render_start(self._read_facts(state), form, grant))
        return await self._order(state, form, grant)

    async def redirect(self, _state: State, call: Call) -> Response:
        return responses.answer_redirect(EMERGENCY_PAGE, call.scope["query_string"])

    def refuse(self, error: DomainError) -> Response:
        """Return a page for a request that no form of the page sends."""
        return _answer(
            error.status, render_error(error.title, error.detail, self._installation), error
        )

    async def _authorize(self, state: State, call: Call, form: PageForm) -> Grant:
        now = state.wall()
        if form.grant and not form.code:
            grant = read_grant(self._keys, state.codes, form.grant, now)
            if grant is None:
                raise Unauthenticated("Enter your name and code again: the 10 minutes are over.")
            return grant
        network = client_network(call.scope, self._authorizer.trusted_proxies)
        by = await self._authorizer.check_code(form.name.strip(), form.code, network)
        grant = make_grant(self._keys[0], state.codes, by, now)
        if grant is None:
            raise Unauthenticated("The code was revoked a moment ago.")
        return grant

    async def _order(self, state: State, form: PageForm, grant: Grant) -> Response:
        """Give the order that the form asks for."""
        try:
            request = form.build_request(state.known | state.checked)
            if request.get("switch") == GLOBAL_ID and not self._is_confirmed(form):
                at = state.wall()
                plan_order(request, id=UUID(request["id"]), by=grant.by, at=at, plane="")
                words = " or ".join(list_confirmations(self._installation.environment))
                problems = [f"Type {words}."] if form.confirm else []
                page = render_confirmation(self._read_facts(state), form, grant, problems)
                return _answer(400 if problems else 200, page)
            acceptance = await self._service.accept(request, grant.by)
        except DomainError as error:
            page = render_start(
                self._read_facts(state),
                form,
                grant,
                problems=error.errors if isinstance(error, InvalidInput) else {"": [error.detail]},
                candidates=error.candidates if isinstance(error, AmbiguousSwitch) else (),
                is_unconfirmed=isinstance(error, Unavailable),
            )
            return _answer(error.status, page, error)
        facts = self._read_facts(state)
        page = render_start(
            facts,
            PageForm(name=form.name),
            grant,
            outcome=render_outcome(facts, acceptance),
        )
        return _answer(200, page)

    def _is_confirmed(self, form: PageForm) -> bool:
        words = list_confirmations(self._installation.environment)
        return form.confirm.strip().lower() in words

    def _read_facts(self, state: State) -> PageFacts:
        service = self._service
        # Only if it is shown: it looks at each instance.
        effect = cache(partial(order_list.count_applied, state))

        def count_applied(order_id: UUID) -> tuple[int, int]:
            applied, instances = effect()
            return applied.get(str(order_id), 0), instances

        return read_facts(
            state,
            self._installation,
            service.plane,
            service.count_planes(),
            service.holders,
            count_applied,
            is_relay=service.relay_key is not None,
            may_withdraw=service.is_own,
        )


def refuse_foreign_form(headers: Headers, console_url: str) -> None:
    """Raise :class:`Forbidden` if a page of another site sent the form.

    There is no cookie that it could use, but it could try codes from many browsers. `Origin` is
    compared by host alone, because a proxy may end TLS.
    """
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        is_own = site in (b"same-origin", b"none")
    else:
        origin = headers.get(b"origin", b"").decode("latin-1")
        own = {
            headers.get(b"host", b"").decode("latin-1"),
            headers.get(b"x-forwarded-host", b"").decode("latin-1"),
            urlsplit(console_url).netloc,
        }
        is_own = not origin or origin.partition("://")[2] in own - {""}
    if not is_own:
        raise Forbidden(
            "The form came from a page of another site. Open this page and send its form."
        )


def _advise_retry(facts: PageFacts, error: DomainError) -> list[str]:
    if not isinstance(error, TooManyRequests):
        return []
    seconds = error.retry_after
    at = (facts.now + timedelta(seconds=seconds)).astimezone(facts.installation.zone)
    return [f"Try again in {count(seconds, 'second', 'seconds')}, at {at:%H:%M:%S %Z}."]


def _answer(status: int, page: str, error: DomainError | None = None) -> Response:
    status, headers, body = responses.answer_page(status, page)
    more = [] if error is None else responses.error_headers(error)
    return status, [*headers, _POLICY, *(each for each in more if each not in headers)], body
