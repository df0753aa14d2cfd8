"""The same work by the official clients and by ours, in one run, alternating, under equal settings."""
