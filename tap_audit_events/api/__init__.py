"""The events from Python: as dictionaries, as bytes, as Arrow."""
