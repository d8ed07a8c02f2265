"""One matrix on several devices of a process, and few devices for many ranks.

Read `hybrid` first, then `balance` (how many rows each device has) and `team` (a thread a device); `two_level` gathers
on few devices what many ranks compute.
"""
