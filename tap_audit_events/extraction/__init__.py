"""Chooses the events to deliver, remembers the delivered ones, and runs the threads."""
