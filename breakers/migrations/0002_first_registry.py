"""The one registry row: nothing is registered yet."""

from django.db import migrations

BEGIN = """
INSERT INTO breakers_registry (id, version, changed_at) VALUES (1, 0, clock_timestamp());
"""


class Migration(migrations.Migration):
    dependencies = [("breakers", "0001_initial")]
    operations = [migrations.RunSQL(BEGIN, "DELETE FROM breakers_registry")]
