"""Classification of failures, and the response to each class. Pure."""
