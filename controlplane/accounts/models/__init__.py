"""Models of accounts; their app label and table names are those of `core`."""

from .emergency_codes import EmergencyCode
from .people import BrowserSession, User
from .tokens import Credentials, Token

__all__ = ["BrowserSession", "Credentials", "EmergencyCode", "Token", "User"]
