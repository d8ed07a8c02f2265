"""OpenCL devices of any vendor through pyopencl.

Read `queue` and `device` first, then `program`, `sequencer`, `buffer`, `courier`, `platform` (which devices there are).
"""
