"""PagerDuty, through its Events API v2."""
