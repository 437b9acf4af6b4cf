"""The people who use the console, and what each role may do."""
