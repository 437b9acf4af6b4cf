"""The kinds of jobs that switches have: importing their modules registers them."""
