"""The request of a signed-in user, for the pages of their own account."""

from controlplane.core.page_responses import PersonRequest

from .models.people import User


class UserRequest(PersonRequest):
    """A request of a signed-in user, as far as types go."""

    user: User
