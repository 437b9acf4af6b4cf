"""The options that filter dead letters."""

import argparse

FILTERS = {
    "fingerprint": "of a group, as `dlq groups` shows it",
    "error": "a part of the error",
    "error_type": "all of the error's type",
    "q": "a part of any name or value",
    "field": "a field, or a path into its JSON, that is there; or path=value",
    "value": "what has to be in --field",
    "before": "failed before that time (RFC 3339)",
    "after": "failed then or later",
}


def add_filters(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument_group("which letters")
    for name, said in FILTERS.items():
        which.add_argument(f"--{name.replace('_', '-')}", metavar="TEXT", help=said)


def read_filters(args: argparse.Namespace) -> dict[str, str]:
    """Return the filters given."""
    found = {name: getattr(args, name) for name in FILTERS}
    return {name: value for name, value in found.items() if value is not None}


def add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", metavar="NAME", help="the Redis server, if there are several")
