"""Messages that leave the house: written with the change, delivered afterwards, never lost."""
