"""Processors, each behind one interface: memory with a side on the host, compiled programs, sequences of calls.

Read `base` first (what a device offers), then `cpu` (generated C through ctypes) and `buffer` (bytes on both sides);
`reference` runs kernels as Python. `cuda` and `opencl` are rooms of their devices, `transforms` has libraries of
Fourier transforms.
"""
