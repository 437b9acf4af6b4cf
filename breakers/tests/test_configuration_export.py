"""Exported policies: the shortest form that the loader completes to the same policy."""

import hypothesis.strategies as st
from hypothesis import given, reject

from breakers.policies import configuration
from breakers.policies.parameters import ALIASES, PARAMETERS
from breakers.services import configuration_export, registry
from controlplane.core.configuration.yaml_writer import write_document
from controlplane.core.errors import InvalidInput

NAME = "core->oracle"


def value_of(parameter):
    least, most = parameter.least or 0, min(parameter.most or 1, 1000)
    match parameter.kind:
        case "whole":
            return st.integers(int(max(least, 0)), int(max(most, least)))
        case "number":
            return st.floats(least, most, allow_nan=False).map(lambda one: round(one, 3))
        case "choice":
            return st.sampled_from(parameter.choices)
        case "words":
            return st.lists(st.sampled_from([500, 503, "timeout", "rate limit"]), max_size=3)
        case "chain":
            hop = st.fixed_dictionaries({"provider": st.just("openai")})
            return st.lists(st.just("cache") | hop, max_size=2)
        case _:
            return st.sampled_from(["", "Core", "after the release: wait", "on"])


def section(name):
    known = {one.name: value_of(one) for one in PARAMETERS if one.section == name}
    known.pop("runbook_url", None)
    if name == "breaker":
        known |= {alias: st.integers(1, 100) for alias in ALIASES}
    return st.fixed_dictionaries({}, optional=known)


policies = st.builds(
    lambda general, sections: {**general, **sections},
    section(""),
    st.fixed_dictionaries(
        {}, optional={name: section(name) for name in ("breaker", "retry", "bulkhead", "fallback")}
    ),
)


@given(policies)
def test_exported_policy_is_completed_to_the_same(fields):
    try:
        state = registry.validate_fields(fields)
    except InvalidInput:
        reject()
    documents = {name: {} for name in configuration.FILES}
    for file, part, entry in configuration_export.split_dependency(state):
        documents[file].setdefault(part, {})[NAME] = entry

    folder = configuration.read_files(
        {name: write_document(name, one) for name, one in documents.items()}
    )

    assert registry.validate_fields(folder.dependencies[NAME]) == state
