"""Where the built extensions land; their stubs lie beside them."""
