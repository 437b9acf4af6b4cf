"""Type of the requests of signed-in users."""

from controlplane.core.page_responses import PersonRequest

from .models.people import User


class UserRequest(PersonRequest):
    user: User
