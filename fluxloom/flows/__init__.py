"""Solvers with their states as a run sees them, a file each: `fluxloom.run.flow.Flow` says what that is."""
