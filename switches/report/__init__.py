"""Weekly reports: composed at the end of the week, sent, signed and stored."""
