"""Create the table of sample entries, with those that earlier releases loaded."""

from django.db import migrations, models

# The audit trail has the same time as the loaded entry's own `changed_at`.
FIND_LOADED = """
    INSERT INTO core_sampleentry (kind, name, loaded_at)
    SELECT DISTINCT ON (target)
           CASE action WHEN 'slo.created' THEN 'SLO' ELSE split_part(target, ':', 1) END,
           substr(target, strpos(target, ':') + 1),
           at
    FROM core_auditentry
    WHERE actor_type = 'system' AND actor_name = 'provision'
      AND action IN (
          'dependency.registered', 'service.registered', 'channel.registered', 'slo.created'
      )
    ORDER BY target, id DESC
"""


class Migration(migrations.Migration):
    expands = "rows of a new table, found in the audit trail, which is only read"
    dependencies = [("core", "0027_favorite")]
    operations = [
        migrations.CreateModel(
            name="SampleEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=24)),
                ("name", models.CharField(db_collation="C", max_length=200)),
                ("loaded_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "sample entries",
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "name"), name="sample_entry_once")
                ],
            },
        ),
        migrations.RunSQL(FIND_LOADED, migrations.RunSQL.noop),
    ]
