"""Operation of the PostgreSQL database: migrations, and the end of sessions that block others."""
