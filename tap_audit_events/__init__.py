"""A Singer tap for the audit events of an organization."""
