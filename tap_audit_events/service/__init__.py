"""Fetches one page from the service."""
