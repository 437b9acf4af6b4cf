"""E-mail, through the mail server that the environment names."""
