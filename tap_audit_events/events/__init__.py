"""A page's bytes become events."""
