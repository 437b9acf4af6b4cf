"""Destinations in words: whose they are, and how they are reached, without the address itself.

The address of a person is for signed-in people; programs, reports and digests get the name.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from controlplane.core.targets.models import Target

WAYS = {"slack": "Slack", "email": "e-mail", "webhook": "webhook", "slack_reply": "Slack reply"}
HIDDEN = "[hidden]"
_SLACKS = ("slack", "slack_reply")
_PEOPLE_OF_SLACK = ("U", "W", "D", "@")


@dataclass(frozen=True)
class Named:
    """A destination: the way, the name of who is reached (empty if no target has it any more).

    `is_personal`: its address is that of a person.
    """

    destination: str
    way: str
    name: str
    is_personal: bool

    @property
    def kind(self) -> str:
        return self.destination.partition(":")[0]

    @property
    def address(self) -> str:
        """What tells it from others of its kind; nothing of a webhook's URL."""
        return "" if self.kind == "webhook" else self.destination.partition(":")[2]

    @property
    def label(self) -> str:
        """`kim (e-mail)`, `Slack #ops`, `a removed webhook`; never a person's address."""
        if self.name:
            return (
                self.name if self.name.lower() == self.way.lower() else f"{self.name} ({self.way})"
            )
        if self.kind == "webhook":
            return "a removed webhook"
        if self.is_personal:
            return f"somebody ({self.way})"
        return f"{self.way} {self.address}".strip()

    def for_programs(self, text: str) -> str:
        """The text without the address, if that is a person's."""
        return text.replace(self.address, HIDDEN) if self.is_personal and self.address else text


def named(destinations: Iterable[str]) -> dict[str, Named]:
    """Each destination with its name, asked for all at once."""
    wanted = list(dict.fromkeys(destinations))
    names = _names(wanted)
    return {one: _named(one, names.get(one, "")) for one in wanted}


def is_personal(destination: str) -> bool:
    """Whether its address is that of a person."""
    kind, _, address = destination.partition(":")
    if kind in _SLACKS:
        return address.startswith(_PEOPLE_OF_SLACK)
    return kind == "email"


def hidden(destination: str) -> str:
    """The destination as programs see it: `email:[hidden]` for a person's, any other as it is."""
    return f"{destination.partition(':')[0]}:{HIDDEN}" if is_personal(destination) else destination


def named_like(name: str) -> list[str]:
    """The destinations of the targets with a name: what a person means who types it."""
    targets = Target.objects.select_related("user").filter(name__iexact=name)
    return [destination for target in targets for destination in _of(target)]


def _named(destination: str, name: str) -> Named:
    kind = destination.partition(":")[0]
    return Named(destination, WAYS.get(kind, kind), name, is_personal(destination))


def _names(destinations: list[str]) -> dict[str, str]:
    parts = [one.partition(":") for one in destinations]
    mails = [address for kind, _, address in parts if kind == "email"]
    slacks = [address for kind, _, address in parts if kind in _SLACKS and address]
    hooks = [address for kind, _, address in parts if kind == "webhook"]
    having = (
        Q(address__in=destinations)
        | Q(email__in=mails)
        | Q(user__email__in=mails)
        | Q(slack_user_id__in=slacks)
        | Q(user__slack_user_id__in=slacks)
        | Q(pk__in=[int(one) for one in hooks if one.isascii() and one.isdigit() and len(one) < 19])
    )
    found: dict[str, str] = {}
    for target in Target.objects.select_related("user").filter(having).order_by("id"):
        for destination in _of(target):
            found.setdefault(destination, target.name)
    return found


def _of(target: Target) -> list[str]:
    """Every destination that is this target's, at any time."""
    if target.address == "webhook":
        return [f"webhook:{target.pk}"]
    account = target.user
    mails = {target.email, account.email if account else ""} - {""}
    slacks = {target.slack_user_id, account.slack_user_id if account else ""} - {""}
    own = [target.address] if target.address else []
    own += [f"email:{one}" for one in mails]
    return own + [f"{kind}:{one}" for kind in _SLACKS for one in slacks]
