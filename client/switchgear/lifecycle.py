"""What happens to clients when their process forks or ends."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from switchgear.client import Switchgear


def register(client: "Switchgear") -> None: ...


def forget(client: "Switchgear") -> None: ...
