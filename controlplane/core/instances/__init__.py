"""Running processes of services, the versions they apply, and the switches they check."""
