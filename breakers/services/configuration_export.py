"""Export of the registry as configuration files."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from breakers.policies.configuration import (
    BREAKER,
    BULKHEAD,
    FALLBACK,
    FIELDS_BY_FILE,
    RETRY,
    SECTIONS,
    SERVICES,
    TIMEOUT,
)
from breakers.policies.parameters import ALIASES, PARAMETERS
from controlplane.core.configuration.comparison import shortest_form

from . import catalog, registry

Document = dict[str, Any]
SERVICE_DEFAULTS = {"kind": "service", "level": 1}


def export_documents() -> dict[str, Document]:
    """Return one document for each configuration file of the registry."""
    documents: dict[str, Document] = {
        SERVICES: {"services": {}, "channels": {}},
        TIMEOUT: {"dependencies": {}},
        BREAKER: {"breakers": {}, "ownership": {}},
        RETRY: {"retries": {}, "workers": {}},
        BULKHEAD: {"bulkheads": {}, "budgets": {}},
        FALLBACK: {"fallbacks": {}, "outages": {}},
    }
    for slug, state in sorted(catalog.SERVICES.list_states().items()):
        fields = _shorten_service(slug, state)
        if retry := fields.pop("retry", None):
            documents[RETRY]["workers"][slug] = retry
        documents[SERVICES]["services"][slug] = fields
    for name, state in sorted(catalog.CHANNELS.list_states().items()):
        complete = partial(catalog.validate_channel, name)
        documents[SERVICES]["channels"][name] = shortest_form(state, {}, complete)
    for name, policy in registry.list_states().items():
        for file, part, fields in split_dependency(policy):
            documents[file][part][name] = fields
    return documents


def split_dependency(state: Mapping[str, Any]) -> Iterator[tuple[str, str, Document]]:
    """Yield the entries of a dependency, each with its file and part."""
    short = _shorten_policy(state)
    yield TIMEOUT, "dependencies", _pick(short, FIELDS_BY_FILE[TIMEOUT])
    for file, part, section in SECTIONS:
        if state.get(section) not in (None, {}):
            yield file, part, short.get(section, {})
    if ownership := _pick(short, ("owner", "managed_by")):
        yield BREAKER, "ownership", ownership


def _pick(document: Document, names: Iterable[str]) -> Document:
    return {name: document[name] for name in names if name in document}


def _shorten_policy(state: Mapping[str, Any]) -> Document:
    """Return a policy without defaults, section by section, as far as it stays the same."""
    general = {name: value for name, value in state.items() if not isinstance(value, Mapping)}
    found = shortest_form(general, _defaults_of(""), registry.validate_fields)
    for _, _, section in SECTIONS:
        if whole := state.get(section):
            found[section] = shortest_form(
                _without_aliased(section, whole),
                _defaults_of(section),
                partial(_complete_section, section),
            )
    return found


def _complete_section(section: str, part: Document) -> Document:
    return registry.validate_fields({section: part})


def _defaults_of(section: str) -> Document:
    """Return the parameters' defaults in a section; "" for those outside of sections."""
    return {
        one.name: list(one.default) if isinstance(one.default, tuple) else one.default
        for one in PARAMETERS
        if one.section == section
    }


def _without_aliased(section: str, whole: Document) -> Document:
    """Return a section without the parameters that its aliases set."""
    aliased = {name for alias, name in ALIASES.items() if alias in whole}
    if "window_seconds" in whole:
        aliased.add("window_type")
    short = {name: value for name, value in whole.items() if name not in aliased}
    same = _complete_section(section, short) == _complete_section(section, whole)
    return short if aliased and same else whole


def _shorten_service(slug: str, state: Document) -> Document:
    complete = partial(catalog.validate_service, slug)
    return shortest_form(state, {**SERVICE_DEFAULTS, "name": slug}, complete)
