"""Small cases of every solver, for runs that are ended and go on: attacks and tests use them."""
