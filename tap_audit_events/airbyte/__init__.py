"""The Airbyte source: the same events in the Airbyte protocol."""
