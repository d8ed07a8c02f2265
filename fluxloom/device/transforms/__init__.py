"""Fourier, cosine and sine transforms by libraries, in the memory of a device.

Read `dft` and `libraries` (which there are) first, then `host`, `cufft`, `vkfft`, `products` (dense matrices), `fft`
(rows of reals).
"""
