"""Formats of sparse matrices that are no part of the package, a file each: layouts of `fluxloom.RaggedLayout`."""
