"""A message may be superseded: left out, because a later one tells the newer state."""

from django.db import migrations, models

ALLOW = """
ALTER TABLE core_outboxmessage DROP CONSTRAINT outbox_state_known;
ALTER TABLE core_outboxmessage ADD CONSTRAINT outbox_state_known
    CHECK (state IN ('pending', 'sent', 'failed', 'superseded'));
"""
FORBID = """
UPDATE core_outboxmessage SET state = 'failed' WHERE state = 'superseded';
ALTER TABLE core_outboxmessage DROP CONSTRAINT outbox_state_known;
ALTER TABLE core_outboxmessage ADD CONSTRAINT outbox_state_known
    CHECK (state IN ('pending', 'sent', 'failed'));
"""


class Migration(migrations.Migration):
    dependencies = [("core", "0022_seal_webhook_urls")]
    expands = "it allows one state more, which the release before neither writes nor waits for"
    operations = [
        migrations.AlterField(
            model_name="outboxmessage",
            name="state",
            field=models.CharField(
                choices=[
                    ("pending", "Pending"),
                    ("sent", "Sent"),
                    ("failed", "Failed"),
                    ("superseded", "Superseded"),
                ],
                default="pending",
                max_length=10,
            ),
        ),
        migrations.RunSQL(
            ALLOW,
            FORBID,
            state_operations=[
                migrations.RemoveConstraint(model_name="outboxmessage", name="outbox_state_known"),
                migrations.AddConstraint(
                    model_name="outboxmessage",
                    constraint=models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["pending", "sent", "failed", "superseded"])
                        ),
                        name="outbox_state_known",
                    ),
                ),
            ],
        ),
    ]
