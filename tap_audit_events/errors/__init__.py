"""What can go wrong, and what to do about it."""
