"""Tests of the solver of separable equations."""
