"""One fault after another against the whole service under load."""
