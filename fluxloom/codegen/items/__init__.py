"""Loops for GPUs: kernels of work items.

Read `item` (one work item) and `kernels` (a template a race strategy) first, then `kernel_writer`, `blocks` (block
colours), `cooperative_rows` and `pairs` (rows that items share).
"""
