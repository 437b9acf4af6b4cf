"""End the alarms of limits: threshold rules replace them, with alerts of their own.

An open one ends here and opens there as an alert if it still holds.
"""

from django.db import migrations

END = """
UPDATE breakers_alarm SET closed_at = clock_timestamp()
WHERE closed_at IS NULL AND rule <> 'outage';
"""


class Migration(migrations.Migration):
    dependencies = [("breakers", "0004_restored_departures")]

    operations = [
        migrations.RunSQL(END, migrations.RunSQL.noop),
        migrations.RemoveIndex(model_name="alarm", name="alarm_to_tell"),
        migrations.RemoveField(model_name="alarm", name="told_at"),
        migrations.RemoveField(model_name="alarm", name="told_alone"),
        migrations.RemoveField(model_name="alarm", name="over_told_at"),
    ]
