"""Add the services a token is limited to. An empty list, the default, limits nothing."""

import django.contrib.postgres.fields
from django.db import migrations, models

TRIGGER = """
DROP TRIGGER core_token_changed ON core_token;
CREATE TRIGGER core_token_changed
    AFTER INSERT OR DELETE OR TRUNCATE
        OR UPDATE OF owner_id, prefix, digest, scopes, {services}expires_at, revoked_at ON core_token
    FOR EACH STATEMENT EXECUTE FUNCTION core_credentials_changed();
"""


class Migration(migrations.Migration):
    dependencies = [("core", "0017_audit_rows_follow_the_last")]
    expands = "a trigger that also fires on a column that the release before never writes"
    operations = [
        migrations.AddField(
            model_name="token",
            name="services",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=120),
                blank=True,
                db_default=[],
                default=list,
                size=None,
            ),
        ),
        migrations.RunSQL(TRIGGER.format(services="services, "), TRIGGER.format(services="")),
    ]
