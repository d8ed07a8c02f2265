"""Attacks: trials with a seed that try to make Fluxloom fail. `frame` runs them, `registry` lists them."""
