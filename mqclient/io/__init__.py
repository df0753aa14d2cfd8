"""The two drivers, and all that touches sockets, threads or the event loop."""
