"""Published scores, as data."""
