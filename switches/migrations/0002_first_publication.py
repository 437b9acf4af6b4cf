"""The one publication row, with an epoch of its own for this installation."""

from django.db import migrations

BEGIN = """
INSERT INTO switches_publication (id, epoch, version, published_at)
VALUES (1, gen_random_uuid(), 0, clock_timestamp());
"""


class Migration(migrations.Migration):
    dependencies = [("switches", "0001_initial")]
    operations = [migrations.RunSQL(BEGIN, "DELETE FROM switches_publication")]
