"""The remoting protocol: engines without I/O, and the two faces over them."""
