"""The outputs of an export: files, folders and tables, replaced or extended as a whole."""
