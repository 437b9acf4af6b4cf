from django.db import migrations, models

MOMENT = {"null": True, "blank": True}
RENAMED = (
    ("alert", "said", "summary", models.CharField(max_length=500, db_column="said")),
    ("alert", "told_at", "notified_at", models.DateTimeField(**MOMENT, db_column="told_at")),
    (
        "alert",
        "told_alone",
        "notified_alone",
        models.BooleanField(default=False, db_column="told_alone"),
    ),
    (
        "alert",
        "over_told_at",
        "resolution_notified_at",
        models.DateTimeField(**MOMENT, db_column="over_told_at"),
    ),
    ("evaluatedminute", "judged_at", "evaluated_at", models.DateTimeField(db_column="judged_at")),
    ("sli", "asked_to", "polled_to", models.IntegerField(**MOMENT, db_column="asked_to")),
    ("sli", "ask_after", "poll_after", models.DateTimeField(**MOMENT, db_column="ask_after")),
)


class Migration(migrations.Migration):
    """Rename fields in the code alone: columns keep their names, for the version before."""

    dependencies = [("slo", "0003_rename_models")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex("alert", "alert_to_tell"),
                *(
                    operation
                    for model, old, new, field in RENAMED
                    for operation in (
                        migrations.RenameField(model, old, new),
                        migrations.AlterField(model, new, field),
                    )
                ),
                migrations.AddIndex(
                    "alert",
                    models.Index(
                        fields=["opened_at"],
                        condition=models.Q(resolution_notified_at__isnull=True),
                        name="alert_to_tell",
                    ),
                ),
            ]
        )
    ]
