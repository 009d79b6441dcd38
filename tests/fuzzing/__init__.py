"""Everything that reads outside text is given any bytes; only its documented errors come out."""
