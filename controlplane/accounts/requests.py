"""The request of a signed-in user, for the pages of their own account."""

from controlplane.core.browser import PersonRequest

from .models.people import User


class UserRequest(PersonRequest):
    """A request of a signed-in user, as far as types go."""

    user: User
