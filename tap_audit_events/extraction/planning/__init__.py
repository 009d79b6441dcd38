"""Chooses the next request and the next page: windows, cursors and estimates, without I/O."""
