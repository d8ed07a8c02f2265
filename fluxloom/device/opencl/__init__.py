"""OpenCL devices of any vendor through pyopencl.

Read `queue` and `device` first, then `program`, `sequencer`, `buffer`, `transfer_queue`, `platform` (which devices
there are).
"""
