"""The settings of a run."""
