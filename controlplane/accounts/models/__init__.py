"""Models of accounts; their app label and table names are those of `core`."""

from .directory import DirectoryGroup, DirectoryUser
from .emergency_codes import EmergencyCode
from .people import BrowserSession, User
from .teams import AuthorityRule, Membership, Ownership, Team
from .tokens import Credentials, Token, TokenCaller

__all__ = [
    "AuthorityRule",
    "BrowserSession",
    "Credentials",
    "DirectoryGroup",
    "DirectoryUser",
    "EmergencyCode",
    "Membership",
    "Ownership",
    "Team",
    "Token",
    "TokenCaller",
    "User",
]
