"""Every write on switches. Each function is one transaction and takes `actor` and `now`."""

from switches.services.engage import Engagement, engage
from switches.services.epoch import begin_epoch
from switches.services.expire import expire_due
from switches.services.extend import acknowledge, extend
from switches.services.register import describe
from switches.services.release import Release, release, undo

__all__ = [
    "Engagement",
    "Release",
    "acknowledge",
    "begin_epoch",
    "describe",
    "engage",
    "expire_due",
    "extend",
    "release",
    "undo",
]
