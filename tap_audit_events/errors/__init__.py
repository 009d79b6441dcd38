"""The errors that end a run, and the redaction of secrets in messages."""
