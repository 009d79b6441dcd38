"""Receivers: programs that accept events by HTTP, one module a kind."""
