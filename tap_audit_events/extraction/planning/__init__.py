"""Which window to request next, how many at a time, and which page comes next: all of it pure."""
