"""The Singer tap."""
