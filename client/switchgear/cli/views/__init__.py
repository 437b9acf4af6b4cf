"""What answers look like: documents of the API in, cells of tables out. Pure."""
