"""Pages in a browser, which is started once for all of them."""
