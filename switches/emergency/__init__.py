"""Emergency orders: engagements that data planes accept without the database."""
