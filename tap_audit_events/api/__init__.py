"""The Python API: events as dictionaries, as bytes, or as Arrow."""
