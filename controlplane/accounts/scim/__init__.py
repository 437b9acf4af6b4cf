"""SCIM 2.0 (RFC 7643 and 7644): an identity provider provisions people and groups.

It uses no library: scim2-models needs pydantic, and evaluates filters in Python instead of SQL.
"""
