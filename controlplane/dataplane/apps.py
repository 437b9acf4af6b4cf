from django.apps import AppConfig


class DataplaneConfig(AppConfig):
    """Here for the command alone: the data plane itself runs without Django."""

    name = "controlplane.dataplane"
    label = "dataplane"
    verbose_name = "Data plane"
