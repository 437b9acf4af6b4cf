"""A model of data planes, their disks and the database, for schedules of emergency orders."""
