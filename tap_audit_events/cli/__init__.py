"""The command `audit-events`, for people at a terminal and for cron."""
