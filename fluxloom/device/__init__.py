"""Processors, each behind one interface: memory with a side on the host, compiled programs, sequences of calls.

Read `base` first (what a device offers), then `cpu` (generated C through ctypes) and `buffer` (bytes on both sides);
`reference` runs kernels as Python. A file that begins with `cuda`, `opencl` or `dft` belongs to that device or library:
`..._buffer` its memory, `..._program` its compiler, `..._sequencer` its replays, `..._courier` its messages.
"""
