"""What a run reports: log lines, metrics, and a progress bar."""
