"""Flag exports of Unleash and LaunchDarkly become entries of switches.yaml."""

import json

import pytest
import yaml
from django.core.management import CommandError, call_command

from controlplane.core.errors import InvalidInput
from switches.services.configuration import check_entry
from switches.services.flag_exports import convert_flags

UNLEASH = {
    "features": [
        {
            "name": "payments-off",
            "type": "kill-switch",
            "description": "Stops card payments.",
            "createdBy": {"id": 4, "name": "Kim"},
            "project": "shop",
        },
        {"name": "search", "type": "kill-switch", "createdBy": "lee@example.com"},
        {"name": "new-checkout", "type": "release"},
        {"name": "old", "type": "kill-switch", "archived": True},
    ],
    "featureStrategies": [],
    "featureTags": [{"featureName": "new-checkout", "tagType": "simple", "tagValue": "stop"}],
}
LAUNCHDARKLY = {
    "items": [
        {
            "key": "exports",
            "name": "Exports",
            "kind": "boolean",
            "temporary": False,
            "_maintainer": {"email": "kim@example.com", "firstName": "Kim"},
        },
        {
            "key": "chat.v2",
            "description": "Chat with agents",
            "kind": "boolean",
            "temporary": True,
            "tags": ["killswitch"],
            "_maintainerTeam": {"key": "chat", "name": "Team Chat"},
        },
        {"key": "color", "kind": "multivariate", "temporary": False},
        {"key": "trial", "kind": "boolean", "temporary": True, "tags": ["beta"]},
    ],
    "totalCount": 4,
}


def test_kill_switches_of_unleash_are_taken_with_owner_and_description():
    converted = convert_flags(UNLEASH)

    assert converted.entries == {
        "feature:payments-off": {"owner": "Kim", "description": "Stops card payments."},
        "feature:search": {"owner": "lee@example.com"},
    }
    assert converted.remarks == ("Other flags left out: 1.",)


def test_permanent_and_tagged_boolean_flags_of_launchdarkly_are_taken():
    assert convert_flags(LAUNCHDARKLY).entries == {
        "feature:chat.v2": {"owner": "Team Chat", "description": "Chat with agents"},
        "feature:exports": {"owner": "kim@example.com", "description": "Exports"},
    }


@pytest.mark.parametrize(
    ("document", "tag", "expected"),
    [(UNLEASH, "stop", "segment:new-checkout"), (LAUNCHDARKLY, "beta", "segment:trial")],
)
def test_tag_and_scope_can_be_chosen(document, tag, expected):
    assert convert_flags(document, scope="segment", tag=tag).entries.keys() == {expected}


def test_key_with_other_signs_is_changed_with_a_remark():
    flags = {"features": [{"name": "pay/out now", "type": "kill-switch"}]}

    converted = convert_flags(flags)

    assert converted.entries == {"feature:pay-out-now": {}}
    assert "pay/out now: became feature:pay-out-now" in converted.remarks[0]


def test_long_text_is_cut_with_a_remark():
    flags = {"features": [{"name": "a", "type": "kill-switch", "createdBy": "x" * 200}]}

    converted = convert_flags(flags)

    assert len(converted.entries["feature:a"]["owner"]) == 120
    assert converted.remarks == ("feature:a: the owner was cut to 120 characters.",)


@pytest.mark.parametrize(
    ("document", "options", "place"),
    [
        ([], {}, "flags"),
        ({"flags": {}}, {}, "flags"),
        ({"features": [{"name": "a", "type": "release"}]}, {}, "flags"),
        ({"features": [{"type": "kill-switch"}]}, {}, "features.0.name"),
        ({"items": [7]}, {}, "items.0.key"),
        (UNLEASH, {"scope": "global"}, "scope"),
        (UNLEASH, {"scope": "nowhere"}, "scope"),
        (
            {"features": [{"name": name, "type": "kill-switch"} for name in ("a/b", "a b")]},
            {},
            "flags.a b",
        ),
        ({"features": [{"name": "///", "type": "kill-switch"}]}, {}, "flags.///"),
    ],
)
def test_export_that_can_not_be_converted_is_refused_by_name(document, options, place):
    with pytest.raises(InvalidInput) as refused:
        convert_flags(document, **options)

    assert list(refused.value.errors) == [place]


def test_feature_tags_that_are_no_list_are_left_out():
    features = [{"name": "a", "type": "kill-switch"}]

    assert list(convert_flags({"features": features, "featureTags": 1}).entries) == ["feature:a"]


def test_command_writes_a_file_that_the_loader_accepts(tmp_path, capsys):
    source, target = tmp_path / "flags.json", tmp_path / "switches.yaml"
    source.write_text(json.dumps(UNLEASH))

    call_command("flags", "convert", str(source), "--output", str(target))

    entries = yaml.safe_load(target.read_text())["switches"]
    assert [check_entry(name, fields)["owner"] for name, fields in entries.items()] == [
        "Kim",
        "lee@example.com",
    ]
    assert "2 switches. Nothing has been registered yet." in capsys.readouterr().err


def test_command_refuses_what_is_not_json(tmp_path):
    source = tmp_path / "flags.json"
    source.write_text("flags:")

    with pytest.raises(CommandError, match="is not JSON"):
        call_command("flags", "convert", str(source))
