"""A Dagster project: a Parquet file for each day and organization."""
