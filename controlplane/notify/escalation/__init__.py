"""What waits for somebody to say "I know": told step by step, until acknowledged or over."""
