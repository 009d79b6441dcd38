"""Which window to request next, and which events to deliver."""
