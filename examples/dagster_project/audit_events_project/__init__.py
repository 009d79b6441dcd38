"""A Dagster project that writes a Parquet file for each day and organization."""
