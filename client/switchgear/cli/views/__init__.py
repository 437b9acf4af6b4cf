"""Pure functions that convert API documents to table rows and to pairs of name and value."""
