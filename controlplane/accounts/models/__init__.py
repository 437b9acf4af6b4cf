"""The tables of accounts, gathered for Django; they keep core's label and names."""

from .people import BrowserSession, User
from .tokens import Credentials, Token

__all__ = ["BrowserSession", "Credentials", "Token", "User"]
