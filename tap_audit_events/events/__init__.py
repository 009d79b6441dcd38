"""Turns the bytes of a page into events."""
