"""Models of accounts; their app label and table names are those of `core`."""

from .people import BrowserSession, User
from .tokens import Credentials, Token

__all__ = ["BrowserSession", "Credentials", "Token", "User"]
