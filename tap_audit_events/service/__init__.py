"""One page from the service."""
