"""Which events to deliver, what is remembered of them, and the threads of a run."""
