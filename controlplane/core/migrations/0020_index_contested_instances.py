"""Index the few contested instances, for *Needs attention*."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("core", "0019_instance_contested_at")]
    operations = [
        AddIndexConcurrently(
            model_name="instance",
            index=models.Index(
                condition=models.Q(("contested_at__isnull", False)),
                fields=["contested_at"],
                name="instance_contested",
            ),
        ),
    ]
