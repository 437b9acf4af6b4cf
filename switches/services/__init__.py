"""Functions that change switches; each is one transaction and takes `actor` and `now`."""

from switches.rules import services as rules
from switches.services.engage import engage
from switches.services.engagement import Engagement
from switches.services.epoch import begin_epoch
from switches.services.expire import expire_due
from switches.services.extend import acknowledge, extend
from switches.services.reconfirm import call_for_reconfirmation, reconfirm
from switches.services.release import Release, release
from switches.services.remind import remind_due
from switches.services.undo import undo

from .registration import describe

__all__ = [
    "Engagement",
    "Release",
    "acknowledge",
    "begin_epoch",
    "call_for_reconfirmation",
    "describe",
    "engage",
    "expire_due",
    "extend",
    "reconfirm",
    "release",
    "remind_due",
    "rules",
    "undo",
]
