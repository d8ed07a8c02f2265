"""Small cases of every solver, for runs that are ended and go on, and meshes that are moved; tests use them too."""
