"""What a key may look like, for services, requests, the decision and the table alike. Pure."""

import re

PATTERN = r"[A-Za-z0-9._-]{1,120}"
KEY = re.compile(PATTERN)
