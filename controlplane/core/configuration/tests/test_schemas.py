"""JSON Schemas: they accept shipped files and exports, and refuse what the loader refuses."""

import json
from copy import deepcopy
from pathlib import Path

import jsonschema
import pytest
import yaml

from controlplane.accounts.models.people import User
from controlplane.core import provision
from controlplane.core.clock import db_now
from controlplane.core.configuration import services as configuration
from controlplane.core.configuration.readers import list_files
from controlplane.core.configuration.yaml_writer import schema_name
from controlplane.core.errors import InvalidInput

from .whole_installation import TEXTS, load, read

SHIPPED = Path(__file__).parents[4] / "config"
UNKNOWN = "unknown_key"


def validator(name):
    schema = configuration.build_schemas()[schema_name(name)]
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def mappings(value, path=()):
    """Yield the path of each mapping in a document."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            yield from mappings(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from mappings(inner, (*path, place))


def with_unknown_key(document, path):
    copy = deepcopy(document)
    inner = copy
    for key in path:
        inner = inner[key]
    inner[UNKNOWN] = {}
    return copy


def is_refused(name, document):
    text = yaml.safe_dump(document, sort_keys=False)
    try:
        load({name: text}, dry_run=True)
    except InvalidInput as error:
        return any(UNKNOWN in place for place in error.errors)
    return False


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.yaml")), ids=lambda path: path.name)
def test_shipped_file_is_valid(path):
    validator(path.name).validate(read(path.name, path.read_text()))


def test_shipped_schemas_are_those_of_this_version():
    written = {
        path.name: json.loads(path.read_text()) for path in (SHIPPED / "schema").glob("*.json")
    }

    assert written == configuration.build_schemas(), "run: manage.py config schema config/schema"


@pytest.mark.django_db
def test_exports_and_test_files_are_valid():
    User.objects.create_user("kim", "correct horse battery", role="operator")
    configuration.load_shipped(actor=provision.ACTOR, now=db_now())
    load(TEXTS)

    texts = configuration.export_texts()

    assert list(texts) == list_files()
    for name, text in [*texts.items(), *TEXTS.items()]:
        validator(name).validate(read(name, text))


@pytest.mark.django_db
def test_unknown_key_that_the_loader_refuses_is_refused_by_the_schema():
    User.objects.create_user("kim", "correct horse battery", role="operator")
    configuration.load_shipped(actor=provision.ACTOR, now=db_now())
    shipped = {path.name: path.read_text() for path in SHIPPED.glob("*.yaml")}
    tried = 0

    for name, text in {**shipped, **TEXTS}.items():
        document, schema = read(name, text), validator(name)
        # One entry of each part stands for the others.
        shapes = {(path[:1], len(path), path[2:]): path for path in mappings(document)}
        for path in shapes.values():
            wrong = with_unknown_key(document, path)
            if is_refused(name, wrong):
                tried += 1
                assert not schema.is_valid(wrong), (name, path)

    assert tried > 40


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("switches.yaml", "switches: {feature:a: {owner: 5}}"),
        ("switches.yaml", "switches: {nowhere:a: {}}"),
        ("rules.yaml", "rules: {x: {kind: sometimes, switches: ['*']}}"),
        ("trips.yaml", "policies: [{trigger: A, title: x, sources: ['*'], scopes: [feature]}]"),
        ("thresholds.yaml", "thresholds: {x: {metric: timeout_rate, severity: loud, value: 1}}"),
        ("drills.yaml", "schedules: {global:all: {every: 7d, reason: x}}"),
        ("targets.yaml", "targets: {x: {kind: robot}}"),
        ("targets.yaml", "targets: {x: {kind: channel, settings: {webhook_url: https://a.b}}}"),
        ("timeout.yaml", "dependencies: {core: {}}"),
        ("slo.yaml", "slos: {a: {kind: ratio}}"),
    ],
)
def test_wrong_value_is_refused(name, text):
    assert not validator(name).is_valid(yaml.safe_load(text))
