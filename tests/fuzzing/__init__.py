"""Every reader of outside text is given any bytes, and may raise only its documented errors."""
