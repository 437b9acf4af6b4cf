"""Secrets are compared in a time that tells nothing: read from the source, not from a clock.

`==` stops at the first difference. Whatever is named like a secret goes through one of the
functions that do not, or is looked up by its hash.
"""

import ast
from pathlib import Path

import pytest
from django.conf import settings

ROOMS = ("controlplane", "switches", "breakers", "slo")
NAMES = ("secret", "signature", "token", "password", "digest", "nonce", "recovery", "hmac", "mac")
SAFE = {"compare_digest", "constant_time_compare"}
# What is named so and is none: of public things, or of values that are no text of a caller's.
HARMLESS = {
    "controlplane/supervisor/postgres.py": {"passwords"},  # Two files of ours, at the start.
    "controlplane/supervisor/layout.py": {"secret"},  # A file of ours, at the start.
    "controlplane/core/idempotency/services.py": {"request_digest", "digest"},  # Of a body.
    "controlplane/accounts/people/session_api.py": {"session_digest"},  # Hashed here.
    "controlplane/core/page_responses.py": {"digest"},  # Of what a page shows, sent with it.
    "breakers/dead_letters/letters/filters.py": {"digest"},  # Of an error's wording.
    "controlplane/accounts/authentication/views/password_reset.py": {
        "token"
    },  # With a word that is no token.
    # Of the orders that two data planes hold, in signed messages.
    "controlplane/dataplane/emergency/peer.py": {"digests"},
    "controlplane/dataplane/emergency/order_exchange.py": {"digest"},
    "controlplane/dataplane/relay/stream.py": {"digest"},
    # Public signatures, of what has been verified or signed here.
    "controlplane/dataplane/published_file/content.py": {"signature"},
    "controlplane/dataplane/published_file/publisher.py": {"signature"},
    "controlplane/dataplane/relay/installation.py": {"signature", "snapshot_signature"},
    "controlplane/dataplane/ingest/boots.py": {"token_id"},  # The number of a row.
    "controlplane/dataplane/emergency/service.py": {"token_id"},  # The number of a row.
    "controlplane/accounts/authentication/socket_sessions.py": {"password"},  # Of two rows.
}


def sources():
    for room in ROOMS:
        for path in sorted((Path(settings.BASE_DIR) / room).rglob("*.py")):
            if "tests" not in path.parts and "migrations" not in path.parts:
                yield path


def compared(source):
    """The names in each comparison by `==`, `!=` or `in`, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(
            isinstance(one, ast.Eq | ast.NotEq) for one in node.ops
        ):
            for side in (node.left, *node.comparators):
                for name in names(side):
                    yield node.lineno, name


def names(side):
    """Return the names in one side of a comparison.

    That is the last part of `a.b.c`, of a call or of a key; for a tuple, those of its elements.
    """
    if isinstance(side, ast.Tuple):
        return [name for each in side.elts for name in names(each)]
    if isinstance(side, ast.Call):
        return names(side.func)
    if isinstance(side, ast.Subscript) and isinstance(side.slice, ast.Constant):
        return [str(side.slice.value)]
    if isinstance(side, ast.Name):
        return [side.id]
    return [side.attr] if isinstance(side, ast.Attribute) else []


def is_secret(name):
    """Return True if a name sounds like a secret; constants are in the source, and so aren't."""
    return not name.isupper() and any(
        part in NAMES or part.rstrip("s") in NAMES for part in name.lower().split("_")
    )


@pytest.mark.parametrize(
    "source",
    [
        "token == kept",
        "sent.signature != expected",
        "row['digest'] == sha256(x)",
        "hmac_of(body) == given",
        "(user.name, user.password) == (a, b)",
    ],
)
def test_the_reader_sees_a_comparison_that_tells(source):
    assert [name for _, name in compared(source) if is_secret(name)]


@pytest.mark.slow
def test_no_secret_is_compared_with_an_equals_sign():
    wrong = []
    for path in sources():
        place = str(path.relative_to(settings.BASE_DIR))
        for line, name in compared(path.read_text()):
            if is_secret(name) and name not in HARMLESS.get(place, set()):
                wrong.append(f"{place}:{line}: {name}")

    assert wrong == []


@pytest.mark.parametrize(
    "place",
    [
        "controlplane/accounts/tokens/services.py",
        "controlplane/dataplane/memory/credentials.py",
        "controlplane/accounts/authentication/codes.py",
        "controlplane/accounts/authentication/provider.py",
        "controlplane/notify/interactions/signatures.py",
        "controlplane/accounts/authentication/socket_sessions.py",
        "controlplane/dataplane/storage/signed_file.py",
    ],
)
def test_where_secrets_are_compared_it_is_by_a_function_that_tells_nothing(place):
    tree = ast.parse((Path(settings.BASE_DIR) / place).read_text())
    called = {name for node in ast.walk(tree) if isinstance(node, ast.Call) for name in names(node)}

    assert called & SAFE


def test_nothing_is_excused_that_is_not_there():
    for place, excused in HARMLESS.items():
        found = {name for _, name in compared((Path(settings.BASE_DIR) / place).read_text())}

        assert excused <= found, place
