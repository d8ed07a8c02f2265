"""Fourier, cosine and sine transforms on every device, and products with dense bases.

Read `transforms` first, then `recipes` (cosines and sines by Fourier transforms), `rows` and `kernels` (libraries that
have rows alone), `matrix` and `fourier` (dense products), `lines`, `ranks` with `mover` (arrays that are divided).
"""

from fluxloom.linalg.direct.transforms.matrix import Basis
from fluxloom.linalg.direct.transforms.transforms import Transforms

__all__ = ["Basis", "Transforms"]
