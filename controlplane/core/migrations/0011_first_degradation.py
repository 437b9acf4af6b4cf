"""The one row of the degradation: nothing is known to be away."""

from django.db import migrations

BEGIN = """
INSERT INTO core_degradation (id, revision, level, causes, since)
VALUES (1, 0, 0, '[]', clock_timestamp());
"""


class Migration(migrations.Migration):
    dependencies = [("core", "0010_resilience_and_degradation")]
    operations = [migrations.RunSQL(BEGIN, "DELETE FROM core_degradation")]
