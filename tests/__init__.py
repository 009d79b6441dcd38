"""The tests of tap-audit-events."""
