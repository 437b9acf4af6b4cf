"""Comments of people on objects such as alerts and episodes; they are never changed or deleted."""
