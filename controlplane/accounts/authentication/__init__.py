"""How people come in: sign-in, second factors, single sign-on, and showing again who one is."""
