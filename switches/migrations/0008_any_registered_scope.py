from django.db import migrations, models

ADD = """
    ALTER TABLE switches_switch
    ADD CONSTRAINT switch_scope_plain CHECK (scope ~ '^[a-z]{1,10}$')
"""
DROP = "ALTER TABLE switches_switch DROP CONSTRAINT switch_scope_plain"


class Migration(migrations.Migration):
    """Services validate scopes by their registry; the table checks the shape of a name only."""

    dependencies = [("switches", "0007_ramps_and_drills")]
    expands = "Every scope that the release before writes has the shape that is checked."

    operations = [
        migrations.AlterField(
            model_name="switch", name="scope", field=models.CharField(max_length=10)
        ),
        migrations.RemoveConstraint(model_name="switch", name="switch_scope_known"),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(ADD, DROP)],
            state_operations=[
                migrations.AddConstraint(
                    model_name="switch",
                    constraint=models.CheckConstraint(
                        condition=models.Q(("scope__regex", "^[a-z]{1,10}$")),
                        name="switch_scope_plain",
                    ),
                )
            ],
        ),
    ]
