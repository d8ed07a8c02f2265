"""NVIDIA GPUs through CuPy.

Read `gpu` (memory, streams, errors) and `device` first, then `program` (NVRTC), `sequencer` and `graph` (replays),
`buffer`, `courier`, `nccl` and `peer` (messages), `support` (what a machine needs).
"""
