from django.db import migrations, models


class Migration(migrations.Migration):
    """Services validate scopes by their registry; the table checks the shape of a name only."""

    dependencies = [("switches", "0007_ramps_and_drills")]

    operations = [
        migrations.AlterField(
            model_name="switch", name="scope", field=models.CharField(max_length=10)
        ),
        migrations.RemoveConstraint(model_name="switch", name="switch_scope_known"),
        migrations.AddConstraint(
            model_name="switch",
            constraint=models.CheckConstraint(
                condition=models.Q(("scope__regex", "^[a-z]{1,10}$")), name="switch_scope_plain"
            ),
        ),
    ]
