"""Random kernels, chains and programs, which attacks and tests share.

`text` writes kernels, `chains` chains of loops on one rank, `programs` those on parts of `worlds`.
"""
