"""Authentication: sign-in, second factors, single sign-on, confirmation of identity."""
