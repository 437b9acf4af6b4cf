"""Checks of CORS, which browsers need if they evaluate without a proxy."""

from collections.abc import Iterator

from ofrep_conformance.registry import Level, add_check
from ofrep_conformance.session import FLAGS_PATH, FlagResponse, Session

SOURCE = "Fetch standard, CORS protocol"
NEEDED_HEADERS = ("content-type", "if-none-match")


def send_preflight(session: Session) -> FlagResponse:
    asked = [*NEEDED_HEADERS, *(name.lower() for name in session.manifest.headers)]
    headers = {
        "Origin": session.manifest.origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": ",".join(sorted(set(asked))),
    }
    return session.send("OPTIONS", FLAGS_PATH, headers=headers, with_credentials=False)


def find_origin_problems(session: Session, response: FlagResponse) -> Iterator[str]:
    allowed = response.headers.get("access-control-allow-origin")
    if allowed not in ("*", session.manifest.origin):
        yield f"Access-Control-Allow-Origin is {allowed or 'missing'}"


def list_values(response: FlagResponse, header: str) -> set[str]:
    return {each.strip().lower() for each in response.headers.get(header, "").split(",")}


@add_check("cors.preflight", Level.MAY, "A preflight without credentials is allowed.", SOURCE)
def check_preflight(session: Session) -> Iterator[str]:
    response = send_preflight(session)
    if not 200 <= response.status < 300:
        yield f"OPTIONS gives {response.status}"
    yield from find_origin_problems(session, response)


@add_check(
    "cors.headers",
    Level.MAY,
    "The preflight allows Content-Type, If-None-Match and the credentials' headers.",
    SOURCE,
)
def check_headers(session: Session) -> Iterator[str]:
    allowed = list_values(send_preflight(session), "access-control-allow-headers")
    for name in (*NEEDED_HEADERS, *(name.lower() for name in session.manifest.headers)):
        # A wildcard does not cover Authorization.
        if name not in allowed and ("*" not in allowed or name == "authorization"):
            yield f"Access-Control-Allow-Headers lacks {name}"


@add_check("cors.expose-etag", Level.MAY, "Scripts of other origins can read the ETag.", SOURCE)
def check_expose_etag(session: Session) -> Iterator[str]:
    response = session.evaluate_all(origin=session.manifest.origin)
    yield from find_origin_problems(session, response)
    if not list_values(response, "access-control-expose-headers") & {"etag", "*"}:
        yield "Access-Control-Expose-Headers lacks ETag"
