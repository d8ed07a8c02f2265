"""What the text of a loop depends on, and how it is printed.

Read `spec` (what a loop is) and `group` (loops of one function) first, then `dialect` and `printer`, `lane` (the kernel
inside generated code), `frame` (what surrounds it), `reduce` (globals), `row_cooperation` (rows that work items share).
"""
