"""Create the table of emergency codes; its changes increment the revision of the credentials."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

TRIGGER = """
CREATE TRIGGER core_emergencycode_changed
    AFTER INSERT OR DELETE OR TRUNCATE
        OR UPDATE OF user_id, salt, digest, created_at, revoked_at ON core_emergencycode
    FOR EACH STATEMENT EXECUTE FUNCTION core_credentials_changed();
"""


class Migration(migrations.Migration):
    dependencies = [("core", "0031_instance_stopped_at")]
    expands = "a trigger of a new table, which the release before never writes"
    operations = [
        migrations.CreateModel(
            name="EmergencyCode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("salt", models.CharField(max_length=32)),
                ("digest", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="emergency_codes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "emergency code",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("revoked_at", None)),
                        fields=("user",),
                        name="emergencycode_one_per_user",
                    )
                ],
            },
        ),
        migrations.RunSQL(TRIGGER, "DROP TRIGGER core_emergencycode_changed ON core_emergencycode"),
    ]
