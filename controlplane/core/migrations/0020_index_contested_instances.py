"""Index the few contested instances, for *Needs attention*.

An interrupted build leaves an invalid index, which is dropped and rebuilt.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("core", "0019_instance_contested_at")]
    expands = "an index, built concurrently, which takes the place of one that is half done"
    operations = [
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS instance_contested", migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            model_name="instance",
            index=models.Index(
                condition=models.Q(("contested_at__isnull", False)),
                fields=["contested_at"],
                name="instance_contested",
            ),
        ),
    ]
