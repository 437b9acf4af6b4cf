"""Create the row of the first steps, hidden where switches are in use already."""

from django.db import migrations, models

HIDE_WHERE_USED = """
    INSERT INTO core_firststepsstate (id, hidden_at, hidden_by)
    SELECT 1, clock_timestamp(), 'system:upgrade'
    WHERE EXISTS (SELECT FROM core_auditentry WHERE action = 'switch.engaged')
"""


class Migration(migrations.Migration):
    expands = "one row of a new table; the audit trail is only read"
    dependencies = [("core", "0028_sample_entries")]
    operations = [
        migrations.CreateModel(
            name="FirstStepsState",
            fields=[
                (
                    "id",
                    models.SmallIntegerField(default=1, primary_key=True, serialize=False),
                ),
                ("completed_at", models.DateTimeField(blank=True, null=True)),
                ("hidden_at", models.DateTimeField(blank=True, null=True)),
                ("hidden_by", models.CharField(blank=True, max_length=210)),
            ],
            options={
                "verbose_name_plural": "first steps state",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="first_steps_one_row"
                    )
                ],
            },
        ),
        migrations.RunSQL(HIDE_WHERE_USED, migrations.RunSQL.noop),
    ]
