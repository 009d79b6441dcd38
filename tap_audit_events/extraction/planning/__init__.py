"""What to request next, and which page comes next: windows, cursors, estimates, all of it pure."""
