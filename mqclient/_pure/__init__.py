"""Reference twins of the extensions: the same surface, written for clarity from the specification."""
