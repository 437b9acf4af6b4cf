"""Other apps' requests to trip a switch, and reports that a cause is over."""
