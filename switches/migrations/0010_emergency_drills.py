from django.db import migrations, models

MODES = ["dry", "live", "emergency"]
TABLES = {
    "drill": ("switches_drill", "drill_mode_known"),
    "drillschedule": ("switches_drillschedule", "drill_schedule_mode_known"),
}


def add_check(model):
    """Return the operation that allows the mode `emergency` in the model's table."""
    table, name = TABLES[model]
    modes = ", ".join(f"'{mode}'" for mode in MODES)
    check = models.CheckConstraint(condition=models.Q(("mode__in", MODES)), name=name)
    return migrations.SeparateDatabaseAndState(
        database_operations=[
            migrations.RunSQL(
                f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK (mode IN ({modes}))",
                f"ALTER TABLE {table} DROP CONSTRAINT {name}",
            )
        ],
        state_operations=[migrations.AddConstraint(model_name=model, constraint=check)],
    )


class Migration(migrations.Migration):
    """Allow drills in mode `emergency`."""

    dependencies = [("switches", "0009_emergency_orders")]
    expands = "The release before writes two of the three modes that are checked."

    operations = [
        migrations.RemoveConstraint(model_name="drill", name="drill_mode_known"),
        migrations.RemoveConstraint(model_name="drillschedule", name="drill_schedule_mode_known"),
        migrations.AlterField(
            model_name="drill", name="mode", field=models.CharField(max_length=10)
        ),
        migrations.AlterField(
            model_name="drillschedule",
            name="mode",
            field=models.CharField(default="live", max_length=10),
        ),
        *map(add_check, TABLES),
    ]
