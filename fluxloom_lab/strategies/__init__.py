"""Strategies of solvers that are no part of the package, a file each: they come in by the doors for other packages."""
