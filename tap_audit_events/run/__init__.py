"""One run: its organizations, the loop over their pages, and what tests replace."""
