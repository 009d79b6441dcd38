"""Tests of the Spark data source, with Spark itself; `make test-spark` installs and runs them."""
