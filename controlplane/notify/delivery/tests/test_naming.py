"""Names of destinations, without personal addresses."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.notify.delivery import attention
from controlplane.notify.targets import destination_names

from .message_samples import create_message, somebody

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 2, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("destination", "is_personal"),
    [
        ("slack_reply:U024BE7LH", True),
        ("slack_reply:W024BE7LH", True),
        ("slack:U024BE7LH", True),
        ("slack:D024BE7LH", True),
        ("email:kim@example.org", True),
        ("slack:C024BE91L", False),
        ("slack:#ops", False),
        ("slack", False),
        ("webhook:7", False),
    ],
)
def test_address_of_a_person_is_personal(destination, is_personal):
    assert (
        destination_names.name_destinations([destination])[destination].is_personal == is_personal
    )
    assert (destination_names.hide_address(destination) != destination) == is_personal


def test_reply_to_somebody_is_told_by_their_name_and_never_by_their_slack_id():
    somebody("Kim", slack_user_id="U024BE7LH")
    for address in ("U024BE7LH", "U999XXXXX"):
        create_message("pending", f"slack_reply:{address}", NOW - timedelta(hours=1))

    shown = attention.list_undelivered_messages(NOW)

    titles = sorted(one.title for one in shown)
    assert titles == [
        "1 message to Kim (Slack reply) is delayed",
        "1 message to someone (Slack reply) is delayed",
    ]
    assert not any("U024BE7LH" in one.path or "U999XXXXX" in one.path for one in shown)
