"""The forms of the emergency page: what a person entered, and the order that it asks for. Pure."""

from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID, uuid4, uuid5

from controlplane.core.errors import DomainError, InvalidInput
from switches.emergency.orders import DEFAULT_EXPIRES_IN, ENGAGE, WITHDRAW
from switches.scopes import is_switch_id, keyed_scopes, split_id

FORM_TYPE = b"application/x-www-form-urlencoded"
SHOW = "show"
ACTIONS = (ENGAGE, WITHDRAW, SHOW)
OTHER_REASON = "other"
MAX_LENGTHS = {"reason": 4000, "ready_reason": 2000, "grant": 1000}
MAX_LENGTH = 200
"""Maximum number of characters of a field that is not in `MAX_LENGTHS`."""
_AGAIN = "Open the page again, and send its form."


@dataclass(frozen=True, kw_only=True)
class PageForm:
    """The fields of a sent form, "" if missing.

    `nonce` is a random number of the form, from which the order's id is derived. `switch` is the
    chosen switch, and `typed_switch` the typed one; likewise `ready_reason` and `reason`. `grant`
    stands for a code that was checked before.
    """

    action: str = ENGAGE
    nonce: str = ""
    switch: str = ""
    typed_switch: str = ""
    ready_reason: str = ""
    reason: str = ""
    expires_in: str = DEFAULT_EXPIRES_IN
    order: str = ""
    confirm: str = ""
    name: str = ""
    code: str = ""
    grant: str = ""

    @property
    def full_reason(self) -> str:
        ready = "" if self.ready_reason == OTHER_REASON else self.ready_reason.strip()
        return ". ".join(filter(None, (ready, self.reason.strip())))

    def build_request(self, known: frozenset[str]) -> dict[str, Any]:
        """Return the order's request, as the API takes it; raise :class:`InvalidInput`.

        A form that is sent twice gives the same id, and a form that was changed another one: a
        person who goes back and stops something else is never refused.
        """
        if self.action == WITHDRAW:
            request = {"action": WITHDRAW, "order": self.order, "reason": self.reason.strip()}
        else:
            request = {
                "action": ENGAGE,
                "switch": resolve_switch(self.switch, self.typed_switch, known),
                "reason": self.full_reason,
                "expires_in": self.expires_in,
            }
        return {**request, "id": str(uuid5(self._read_nonce(), repr([*request.values()])))}

    def keep_nonce(self) -> str:
        """Return the form's number, so that it stays the same order; a new one if it has none."""
        try:
            return str(UUID(self.nonce))
        except ValueError:
            return make_nonce()

    def _read_nonce(self) -> UUID:
        try:
            return UUID(self.nonce)
        except ValueError:
            raise InvalidInput(
                {"": [f"The form has no valid number of its own. {_AGAIN}"]}
            ) from None


EMPTY_FORM = PageForm()


class AmbiguousSwitch(InvalidInput):
    """Raised if it is not clear which switch is meant; `candidates` are the ids to choose from."""

    def __init__(self, message: str, candidates: list[str]) -> None:
        super().__init__({"switch": [message]})
        self.candidates = candidates


def make_nonce() -> str:
    return str(uuid4())


def parse_form(content_type: bytes, body: bytes) -> PageForm:
    """Return the form in a request's body; raise :class:`DomainError` if it has none."""
    if content_type.partition(b";")[0].strip().lower() != FORM_TYPE:
        raise DomainError(f"This page takes {FORM_TYPE.decode()} only. {_AGAIN}")
    known = {field.name for field in fields(PageForm)}
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=2 * len(known),
        )
    except ValueError as error:  # UnicodeError is one.
        raise DomainError(f"The form can't be read. {_AGAIN}") from error
    values = dict(pairs)
    if len(values) != len(pairs):
        raise DomainError(f"The form has a field twice. {_AGAIN}")
    if unknown := sorted(values.keys() - known):
        raise DomainError(f"The form has an unknown field: {unknown[0][:50]}. {_AGAIN}")
    for name, value in values.items():
        if len(value) > (limit := MAX_LENGTHS.get(name, MAX_LENGTH)):
            raise DomainError(f"The field {name} has more than {limit:,} characters. {_AGAIN}")
    form = PageForm(**values)
    if form.action not in ACTIONS:
        raise DomainError(f"The form's action must be one of {', '.join(ACTIONS)}. {_AGAIN}")
    return form


def resolve_switch(chosen: str, typed: str, known: frozenset[str]) -> str:
    """Return the id of the switch that is meant; raise :class:`InvalidInput`, rather than guess.

    A key without a scope is never completed, because the same key may exist in several scopes.
    """
    chosen, typed = chosen.strip(), typed.strip()
    if not chosen and not typed:
        raise InvalidInput({"switch": ["Choose or type the switch to stop."]})
    found = split_id(typed)
    switch = typed if found is None else f"{found[0]}:{found[1]}"
    if chosen and switch and chosen != switch:
        message = f"You chose {chosen} and typed {typed}. Which one?"
        raise AmbiguousSwitch(message, [chosen, switch] if is_switch_id(switch) else [chosen])
    if chosen or found is not None:
        return chosen or switch
    ids = [f"{scope.name}:{typed}" for scope in keyed_scopes()]
    candidates = [each for each in ids if each in known] or [*filter(is_switch_id, ids)]
    if not candidates:
        return typed  # The ordinary rules tell what is wrong with it.
    raise AmbiguousSwitch(f"Which {typed} do you mean?", candidates)
