import django.db.models.deletion
from django.db import migrations, models

RENAMED = (
    ("Minute", "CounterMinute", "slo_minute"),
    ("Hour", "CounterHour", "slo_hour"),
    ("Sample", "StoredSample", "slo_sample"),
    ("Delayed", "DeferredUpdate", "slo_delayed"),
    ("Batch", "DeltaBatch", "slo_batch"),
    ("Reported", "ReportedEvents", "slo_reported"),
    ("Standing", "SloStatus", "slo_standing"),
    ("Turn", "EvaluatedMinute", "slo_turn"),
)


class Migration(migrations.Migration):
    """Rename models in the code alone: tables keep their names."""

    dependencies = [("slo", "0002_builtin_rules")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                operation
                for old, new, table in RENAMED
                for operation in (
                    migrations.AlterModelTable(old, table),
                    migrations.RenameModel(old, new),
                )
            ]
            + [
                migrations.AlterModelOptions("deferredupdate", {}),
                migrations.AlterModelOptions(
                    "deltabatch", {"verbose_name_plural": "delta batches"}
                ),
                migrations.AlterModelOptions(
                    "reportedevents",
                    {
                        "verbose_name": "reported events",
                        "verbose_name_plural": "reported events",
                    },
                ),
                migrations.AlterModelOptions(
                    "slostatus",
                    {"verbose_name": "SLO status", "verbose_name_plural": "SLO statuses"},
                ),
                migrations.AlterField(
                    "slostatus",
                    "slo",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="status",
                        serialize=False,
                        to="slo.slo",
                    ),
                ),
            ],
        )
    ]
