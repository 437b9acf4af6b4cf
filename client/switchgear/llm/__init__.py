"""What calls to language models need beside: a chain of providers, and a budget of tokens."""
