"""Names of instances, `service/instance`, as sent by clients. Pure."""

PART_LENGTH = 120
TOKEN_PREFIX = "token:"  # noqa: S105


def is_part(text: object) -> bool:
    """Return True for a valid part of a name: 1 to 120 printable characters, no space or slash."""
    return (
        isinstance(text, str)
        and 0 < len(text) <= PART_LENGTH
        and text.isprintable()
        and " " not in text
        and "/" not in text
        and "\ufffd" not in text  # Replaces invalid UTF-8.
    )


def service_of(name: str) -> str | None:
    """Return the service of an instance's name; None if the name is invalid."""
    service, _, instance = name.partition("/")
    if is_part(service) and is_part(instance) and not name.startswith(TOKEN_PREFIX):
        return service
    return None


def service_of_caller(caller: str) -> str | None:
    """Return the service that a client's requests are counted for; None if `caller` is invalid.

    For an instance, `caller` is its name. For other clients it is `token:<name>`, which counts as a
    service of its own, cut to `PART_LENGTH` characters.
    """
    if not caller.startswith(TOKEN_PREFIX):
        return service_of(caller)
    sane = len(caller) <= len(TOKEN_PREFIX) + PART_LENGTH and caller.isprintable()
    return caller[:PART_LENGTH] if sane and caller != TOKEN_PREFIX else None
