"""A message may be superseded: left out, because a later one tells the newer state."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("core", "0022_seal_webhook_urls")]
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
        migrations.RemoveConstraint(model_name="outboxmessage", name="outbox_state_known"),
        migrations.AddConstraint(
            model_name="outboxmessage",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["pending", "sent", "failed", "superseded"])),
                name="outbox_state_known",
            ),
        ),
    ]
