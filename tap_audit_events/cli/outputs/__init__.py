"""Where an export goes: files, folders and tables that are replaced or extended as a whole."""
