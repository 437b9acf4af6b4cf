"""Parsing of a configuration folder into services, dependencies and channels.

Pure. If a file is missing, the fields that it would define keep their registered values. A file
that exists is complete: a dependency that `breaker.yaml` does not name gets no breaker.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from breakers import names
from breakers.policies.parameters import TIERS
from controlplane.core.configuration.files import read_document, read_entries
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import add_error as _note

Entries = dict[str, dict[str, Any]]

SERVICES, TIMEOUT, BREAKER = "services.yaml", "timeout.yaml", "breaker.yaml"
RETRY, BULKHEAD, FALLBACK = "retry.yaml", "bulkhead.yaml", "fallback.yaml"
FILES = (SERVICES, TIMEOUT, BREAKER, RETRY, BULKHEAD, FALLBACK)
"""The files, in the order in which they are read."""
PARTS = {
    SERVICES: ("services", "channels", "stages"),
    TIMEOUT: ("dependencies",),
    BREAKER: ("breakers", "ownership"),
    RETRY: ("retries", "workers"),
    BULKHEAD: ("bulkheads", "tiers", "budgets"),
    FALLBACK: ("fallbacks", "outages", "chains"),
}
"""Top-level parts of each file. `stages` and `chains` only hold YAML anchors."""
FIELDS_BY_FILE = {
    TIMEOUT: (
        "protocol", "timeout_ms", "routes", "criticality", "mode", "runbook_url", "notes",
    ),
    BREAKER: ("breaker", "owner", "managed_by"),
    RETRY: ("retry",),
    BULKHEAD: ("bulkhead", "budget"),
    FALLBACK: ("fallback", "on_outage"),
}  # fmt: skip
"""Fields of a dependency that each file defines."""
OWNERSHIP = frozenset({"owner", "managed_by"})
SECTIONS = (
    (BREAKER, "breakers", "breaker"),
    (RETRY, "retries", "retry"),
    (BULKHEAD, "bulkheads", "bulkhead"),
    (BULKHEAD, "budgets", "budget"),
    (FALLBACK, "fallbacks", "fallback"),
    (FALLBACK, "outages", "on_outage"),
)


@dataclass(frozen=True)
class ConfigurationFolder:
    """The merged content of the files in a configuration folder.

    `dependencies` maps the name of a dependency to its fields in the existing files, `retries` the
    slug of a worker to its retry settings. `remarks` are shown to the person who loads the folder.
    """

    services: Entries = field(default_factory=dict)
    channels: Entries = field(default_factory=dict)
    dependencies: Entries = field(default_factory=dict)
    retries: Entries = field(default_factory=dict)
    files: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()

    @property
    def silent_on(self) -> frozenset[str]:
        """Fields that only missing files define; dependencies keep their values of these."""
        missing = FIELDS_BY_FILE.keys() - self.files
        return frozenset(name for file in missing for name in FIELDS_BY_FILE[file])


def read_files(texts: Mapping[str, str]) -> ConfigurationFolder:
    """Parse and merge configuration files, given as text by file name.

    Raise :class:`InvalidInput`, whose errors name file and key.
    """
    errors: dict[str, list[str]] = {}
    files = {
        name: read_document(name, texts[name], PARTS[name], errors)
        for name in FILES
        if name in texts
    }
    if not files:
        errors["folder"] = [f"The folder has none of {', '.join(FILES)}."]
    dependencies = _merge_dependencies(files, errors)
    tiers = files.get(BULKHEAD, {}).get("tiers") or ()
    found = ConfigurationFolder(
        services=read_entries(SERVICES, files.get(SERVICES, {}), "services", errors),
        channels=read_entries(SERVICES, files.get(SERVICES, {}), "channels", errors),
        dependencies=dependencies,
        retries=read_entries(RETRY, files.get(RETRY, {}), "workers", errors),
        files=frozenset(files),
        remarks=tuple(
            f"{BULKHEAD}: the tier {tier} is defined only in this folder, so its numbers were"
            " copied."
            for tier in tiers
            if tier not in TIERS
        ),
    )
    if errors:
        raise InvalidInput(errors)
    return found


def locate_field(name: str, path: str) -> str:
    """Return the file and key that define the field `path` of the dependency `name`.

    For example `breaker.yaml: core->oracle: window_size` for `breaker.window_size`.
    """
    top, _, rest = path.partition(".")
    file = next((file for file, fields in FIELDS_BY_FILE.items() if top in fields), TIMEOUT)
    in_section = any(top == section for _, _, section in SECTIONS)
    return f"{file}: {name}: {rest or top if in_section else path}"


def _merge_dependencies(files: Mapping[str, Any], errors: dict[str, list[str]]) -> Entries:
    """Return the fields of each dependency, collected from all files."""
    found = read_entries(TIMEOUT, files.get(TIMEOUT, {}), "dependencies", errors)
    closed = TIMEOUT in files
    allowed = {*FIELDS_BY_FILE[TIMEOUT]}
    for name, entry in found.items():
        if names.split_name(name) is None:
            _note(errors, f"{TIMEOUT}: {name}", "Must be caller->callee, two slugs.")
        for key in entry.keys() - allowed:
            _note(errors, f"{TIMEOUT}: {name}: {key}", "Unknown in this file.")
    tiers = read_entries(BULKHEAD, files.get(BULKHEAD, {}), "tiers", errors)

    def entries_of(file: str, part: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        for name, entry in read_entries(file, files.get(file, {}), part, errors).items():
            for key in entry.keys() - OWNERSHIP if part == "ownership" else ():
                _note(errors, f"{file}: {part}: {name}: {key}", "Unknown in this section.")
            if (closed and name not in found) or names.split_name(name) is None:
                _note(errors, f"{file}: {part}: {name}", f"Not defined in {TIMEOUT}.")
            else:
                yield found.setdefault(name, {}), entry

    for file, part, section in SECTIONS:
        for fields, entry in entries_of(file, part):
            if section == "bulkhead" and (tier := str(entry.get("tier"))) in tiers:
                own = {name: one for name, one in entry.items() if tier in TIERS or name != "tier"}
                entry = {**tiers[tier], **own}
            fields[section] = entry
    for fields, entry in entries_of(BREAKER, "ownership"):
        fields.update(entry)
    return found
