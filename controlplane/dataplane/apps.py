from django.apps import AppConfig


class DataplaneConfig(AppConfig):
    """App that provides the `dataplane` command; the data plane itself runs without Django."""

    name = "controlplane.dataplane"
    label = "dataplane"
    verbose_name = "Data plane"
