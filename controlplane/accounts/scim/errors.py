"""Errors of SCIM requests, with the `scimType` of RFC 7644, section 3.12."""

from controlplane.core.errors import Conflict, DomainError


class InvalidRequest(DomainError):
    """A request that can't be carried out; `scim_type` is a keyword such as `invalidFilter`."""

    def __init__(self, scim_type: str, detail: str) -> None:
        super().__init__(detail, scimType=scim_type)


class NotUnique(Conflict):
    def __init__(self, detail: str) -> None:
        super().__init__(detail, scimType="uniqueness")


class PreconditionFailed(DomainError):
    """Raised if the resource has changed since the version in `If-Match`."""

    status = 412
    slug = "precondition-failed"
    title = "The resource has changed"
