"""What is so: the turn of each minute, alerts, what they set off, and looking back."""
