"""Conversion of API documents to table rows and facts. Pure."""
