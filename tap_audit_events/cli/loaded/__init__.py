"""What was loaded: files and tables, read for comparison and for the report."""
