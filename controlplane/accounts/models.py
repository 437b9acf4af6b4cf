"""The tables of accounts, gathered for Django; they keep core's label and names."""

from controlplane.accounts.people.models import BrowserSession, User
from controlplane.accounts.tokens.models import Credentials, Token

__all__ = ["BrowserSession", "Credentials", "Token", "User"]
