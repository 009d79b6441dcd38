"""The Airbyte source, which writes events as messages of the Airbyte protocol."""
