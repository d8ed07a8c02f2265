"""Fourier, cosine and sine transforms on every device, and products with dense bases."""

from fluxloom.linalg.transforms.matrix import Basis
from fluxloom.linalg.transforms.transforms import Transforms

__all__ = ["Basis", "Transforms"]
