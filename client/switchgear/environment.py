"""A client's arguments from `SWITCHGEAR_*` variables, and a description of each invalid one."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from switchgear.journal import log
from switchgear.settings import (
    FORCE_ENGAGED,
    as_name,
    fallback_problem,
    is_name,
    read_forced,
    read_public_keys,
    token_problem,
    url_problem,
)

PREFIX = "SWITCHGEAR_"
ARGUMENTS = (
    *("url", "token", "service", "instance", "state_dir", "bootstrap"),
    *("public_key", "fallback_url"),
)
PLANES = PREFIX + "PLANES"
"""Variable with the URLs of data planes, for the command `switchgear kill`."""
_KNOWN = {*(PREFIX + name.upper() for name in ARGUMENTS), FORCE_ENGAGED, PLANES}
_CONSOLE = re.compile(r"SWITCHGEAR_((DATA|DOCS|STATIC)_DIR|ADMIN_PASSWORD|SUPERVISOR_PID|TAG)")
"""Variables of a console that runs in the same environment."""
_KUBERNETES = re.compile(r"SWITCHGEAR_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\w+)?)")
"""Variables that Kubernetes sets in each pod for services called `switchgear` or `switchgear-…`."""


def client_arguments(given: Mapping[str, Any], *, strict: bool) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments of a client, and the problems of their environment variables.

    The arguments `given` take precedence over the variables. Log each problem; with `strict`, raise
    :class:`ValueError` with all of them instead.
    """
    found, problems = read_environment(os.environ, given)
    arguments: dict[str, Any] = {**found, **given}
    is_url_given = arguments.setdefault("url", None) is not None or "url" in given
    if strict:
        _, wrong = read_forced(os.environ.get(FORCE_ENGAGED, ""))
        problems += [f"{FORCE_ENGAGED}: {each}" for each in wrong]
        if not is_url_given and not problems:
            problems = ["SWITCHGEAR_URL is not set"]
        if problems:
            raise ValueError("; ".join(problems))
    for problem in problems:
        log.error("switchgear: %s", problem)
    if not is_url_given and not problems:
        log.warning(
            "switchgear: SWITCHGEAR_URL is not set, so no switches are received from a console"
        )
    if unknown := unknown_variables(os.environ):
        log.warning("switchgear: unknown variables, which have no effect: %s", ", ".join(unknown))
    return arguments, problems


def read_environment(
    environment: Mapping[str, str], given: Mapping[str, object]
) -> tuple[dict[str, object], list[str]]:
    """Return the arguments of a client, and the problems of the variables that they come from.

    `given` are arguments that take precedence: their variables are not read. Invalid values are
    left out or corrected; without a usable URL or token the client is `offline`. A problem names
    its variable and contains no secret.
    """
    values = {name: environment.get(PREFIX + name.upper(), "").strip() for name in ARGUMENTS}
    found: dict[str, object] = {
        name: value for name, value in values.items() if value and name not in given
    }
    problems = _read_console(found, given)
    problems += _read_public_key(found)
    problems += _read_fallback(found, given)
    for name in ("service", "instance"):
        value = found.get(name)
        if value is None or is_name(value):
            continue
        variable, name_instead = PREFIX + name.upper(), as_name(str(value))
        found.pop(name)
        if name_instead:
            found[name] = name_instead
        problems.append(
            f"{variable} is not a valid name: {value!r:.200}; using"
            f" {name_instead or 'the default'} instead"
        )
    return found, problems


def _read_console(found: dict[str, object], given: Mapping[str, object]) -> list[str]:
    """Check the console's URL and token, and return the problems found.

    If there are any, set `offline` in `found`, and remove the invalid values.
    """
    problems = []
    has_console = given.get("url", found.get("url")) is not None
    if "url" in found and (wrong := url_problem(str(found["url"]))) is not None:
        found["url"] = None
        problems.append(f"SWITCHGEAR_URL is invalid: {wrong}")
    elif not has_console and "url" not in given and "token" in found:
        problems.append("SWITCHGEAR_URL is not set, although SWITCHGEAR_TOKEN is")
    if has_console and "token" not in given and not given.get("offline"):
        wrong = token_problem(str(found.get("token", "")))
        if wrong is not None:
            is_set = found.pop("token", None) is not None
            problems.append(f"SWITCHGEAR_TOKEN is {'invalid' if is_set else 'not set'}: {wrong}")
    if problems:
        found["offline"] = True
    return problems


def _read_public_key(found: dict[str, object]) -> list[str]:
    """Keep the valid keys in `found`; return the problems found.

    If none is usable, no keys are left, by which every snapshot is refused: a mistake in a setting
    must not turn verification off.
    """
    if "public_key" not in found:
        return []
    from switchgear.console import signatures  # Imported here to keep the client's import fast.

    keys, wrong = read_public_keys(str(found["public_key"]))
    if keys and not signatures.has_extra():
        keys, wrong = (), [signatures.MISSING_EXTRA]
    found["public_key"] = keys
    refused = "" if keys else "; no snapshot is accepted"
    return [f"SWITCHGEAR_PUBLIC_KEY can't be used: {each}{refused}" for each in wrong]


def _read_fallback(found: dict[str, object], given: Mapping[str, object]) -> list[str]:
    """Remove an invalid URL from `found`, and return the problem."""
    url = found.get("fallback_url")
    if url is None:
        return []
    is_verified = given.get("public_key", found.get("public_key")) is not None
    wrong = fallback_problem(str(url), () if is_verified else None)
    if wrong is None:
        return []
    found.pop("fallback_url")
    return [f"SWITCHGEAR_FALLBACK_URL is not used: {wrong}"]


def unknown_variables(names: Iterable[str]) -> list[str]:
    """Return the unknown `SWITCHGEAR_*` variables, each with the known one that it resembles."""
    unknown = [
        name
        for name in sorted(names)
        if name.startswith(PREFIX)
        and name not in _KNOWN
        and not _CONSOLE.fullmatch(name)
        and not _KUBERNETES.fullmatch(name)
    ]
    if not unknown:
        return []
    import difflib  # Imported here to keep the import of the client fast.

    described = []
    for name in unknown:
        similar = difflib.get_close_matches(name, sorted(_KNOWN), 1, 0.85)
        described.append(f"{name} ({similar[0]}?)" if similar else name)
    return described
