"""Authentication: sign-in, second factors, single sign-on, and confirming one's identity."""
