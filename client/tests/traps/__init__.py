"""What each pattern is known to do wrong: sprung without this library, and harmless with it."""
