"""Pure code about one dead letter: fields, error, filters, redaction and presentation."""
