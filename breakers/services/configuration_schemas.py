"""JSON Schemas of the registry's configuration files, from the tables of the loader."""

from collections.abc import Iterable, Mapping

from breakers import names
from breakers.models import Channel, Service
from breakers.policies import policy
from breakers.policies.configuration import (
    BREAKER,
    BULKHEAD,
    FALLBACK,
    FIELDS_BY_FILE,
    RETRY,
    SERVICES,
    TIMEOUT,
)
from breakers.policies.parameters import ALIASES, PARAMETERS, TIERS, Parameter, section_parameters
from breakers.policies.values import MAX_HOP_LENGTH, MAX_IN_HOP
from controlplane.core.configuration import schemas
from controlplane.core.configuration.schemas import Schema
from controlplane.core.json_values import MAX_WORD_LENGTH

from . import catalog

DEPENDENCY = f"^{names.SLUG}{names.ARROW}{names.SLUG}$"
ANCHORS: Schema = {"type": ["object", "null"], "description": "Values to refer to by *name."}


def build_schemas() -> dict[str, Schema]:
    """Return the JSON Schema of each configuration file of the registry."""
    return {
        SERVICES: _services_schema(),
        TIMEOUT: _file(TIMEOUT, "Calls", dependencies=schemas.fields(_general_fields(TIMEOUT))),
        BREAKER: _file(
            BREAKER,
            "Circuit breakers",
            breakers=_section("breaker", _alias_fields()),
            ownership=schemas.fields(_pick(("owner", "managed_by"))),
        ),
        RETRY: _retry_schema(),
        BULKHEAD: _bulkhead_schema(),
        FALLBACK: _fallback_schema(),
    }


def _file(file: str, title: str, **parts: Schema) -> Schema:
    found = {
        part: schemas.entries(schemas.nullable(one), DEPENDENCY) for part, one in parts.items()
    }
    return schemas.file_schema(title, found)


def _services_schema() -> Schema:
    texts = {field: schemas.text(longest) for field, longest in catalog.MAX_LENGTHS.items()}
    service: dict[str, Schema] = {
        **{field: texts[field] for field in catalog.SERVICE_TEXTS},
        **{field: _text_list() for field in catalog.SERVICE_LISTS},
        "kind": schemas.choice(Service.Kind.values),
        "level": schemas.whole(1, 3, "Degradation of the installation while the service is down."),
        "retry": _worker_schema(),
    }
    channel: dict[str, Schema] = {
        **{field: texts[field] for field in catalog.CHANNEL_TEXTS},
        "kind": schemas.choice(Channel.Kind.values),
    }
    return schemas.file_schema(
        "Services and event channels",
        {
            "services": schemas.entries(
                schemas.nullable(schemas.fields(service)), f"^{names.SLUG}$"
            ),
            "channels": schemas.entries(schemas.fields(channel, ("kind",))),
            "stages": ANCHORS,
        },
    )


def _retry_schema() -> Schema:
    schema = _file(RETRY, "Retries", retries=_section("retry"))
    schema["properties"]["workers"] = schemas.nullable(
        schemas.entries(schemas.nullable(_worker_schema()), f"^{names.SLUG}$")
    )
    return schema


def _bulkhead_schema() -> Schema:
    own_tiers = {"tier": schemas.text(help=f"{', '.join(TIERS)}, or one of `tiers`.")}
    schema = _file(
        BULKHEAD,
        "Bulkheads and token budgets",
        bulkheads=_section("bulkhead", own_tiers),
        budgets=_section("budget"),
    )
    schema["properties"]["tiers"] = schemas.nullable(schemas.entries(_section("bulkhead")))
    return schema


def _fallback_schema() -> Schema:
    outage = schemas.fields(
        {
            "action": schemas.choice(policy.OUTAGE_ACTIONS),
            "switch": schemas.text(help="Switch to engage: segment:finance."),
            "open_share": schemas.number(0.01, 1),
            "for_seconds": schemas.number(0, 3600),
            "expires_in": schemas.text(),
        },
        ("action",),
    )
    schema = _file(FALLBACK, "Fallbacks", fallbacks=_section("fallback"), outages=outage)
    schema["properties"]["chains"] = ANCHORS
    return schema


def _general_fields(file: str) -> Mapping[str, Schema]:
    route = schemas.fields(
        {
            "pattern": schemas.text(200, pattern="^/"),
            "timeout_ms": schemas.whole(1, 86_400_000),
            "reason": schemas.text(300),
        },
        ("pattern", "timeout_ms"),
    )
    wanted = [name for name in FIELDS_BY_FILE[file] if name != "routes"]
    return {**_pick(wanted), "routes": schemas.list_of(route, policy.MAX_ROUTES)}


def _pick(wanted: Iterable[str]) -> dict[str, Schema]:
    general = {one.name: _parameter_schema(one) for one in PARAMETERS if not one.section}
    return {name: general[name] for name in wanted}


def _section(section: str, more: Mapping[str, Schema] | None = None) -> Schema:
    found = {one.name: _parameter_schema(one) for one in section_parameters(section)}
    return schemas.fields({**found, **(more or {})})


def _alias_fields() -> dict[str, Schema]:
    table = {one.name: one for one in section_parameters("breaker")}
    return {alias: _parameter_schema(table[name]) for alias, name in ALIASES.items()}


def _parameter_schema(one: Parameter) -> Schema:
    most = int(one.most or 0)
    match one.kind:
        case "whole":
            return schemas.whole(one.least, one.most, one.help)
        case "number":
            return schemas.number(one.least, one.most, one.help)
        case "choice":
            return schemas.choice(one.choices, one.help)
        case "words":
            word: Schema = {"type": ["integer", "string"], "maxLength": MAX_WORD_LENGTH}
            return schemas.list_of(word, most, one.help)
        case "chain":
            return schemas.list_of(_hop_schema(), most, one.help)
        case _:
            if one.name == "runbook_url":
                return schemas.web_url(most, one.help)
            return schemas.text(most, one.help)


def _hop_schema() -> Schema:
    plain = {"type": ["string", "number", "boolean", "null"]}
    flat = {"type": "object", "maxProperties": MAX_IN_HOP, "additionalProperties": plain}
    return {"anyOf": [schemas.text(MAX_HOP_LENGTH), flat]}


def _worker_schema() -> Schema:
    texts = {field: schemas.text(longest) for field, longest in catalog.RETRY_TEXTS.items()}
    return schemas.fields(
        {
            "max_retries": schemas.whole(0, 100),
            "delays_seconds": schemas.list_of(schemas.number(0, 86_400), catalog.MAX_LISTED),
            "retry_on": _text_list(),
            "never": _text_list(),
            **texts,
        }
    )


def _text_list() -> Schema:
    return schemas.list_of(schemas.text(300), catalog.MAX_LISTED)
