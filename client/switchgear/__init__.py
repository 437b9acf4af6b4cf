"""Switchgear's client library: a service that can always ask whether it may go on.

    from switchgear import Switchgear

    gear = Switchgear.from_env()
    if gear.allowed(feature="chat", targeting_key=user_id): ...

Nothing here raises into a service because the console is slow, wrong or gone. Dead letters of Redis
streams are in :mod:`switchgear.dlq`, what tests need in :mod:`switchgear.testing`.
"""

from switchgear.client import Switchgear
from switchgear.deciding.evaluate import Decision
from switchgear.following.announcer import Change
from switchgear.guards import SwitchEngaged
from switchgear.status import Status

__version__ = "0.2.0"

from_env = Switchgear.from_env

__all__ = ["Change", "Decision", "Status", "SwitchEngaged", "Switchgear", "from_env"]
