"""NVIDIA GPUs through CuPy.

Read `gpu` (memory, streams, errors) and `device` first, then `program` (NVRTC), `sequencer` and `graph` (replays),
`buffer`, `transfer_queue`, `nccl` and `peer` (messages), `support` (what a machine needs).
"""
