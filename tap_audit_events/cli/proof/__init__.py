"""What `verify` and `report` conclude from the loaded rows, and how they show it."""
