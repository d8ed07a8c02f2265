"""The laboratory of Fluxloom: what measures and checks the package, and is imported by none of it."""
