"""The events that the sandbox holds: generated or given, in the order of the interface."""
