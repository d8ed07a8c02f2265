"""Write the body of Ahmed, a car that is simple, as an STL file.

    python examples/ahmed_body.py ahmed.stl --slant 25

In metres: 1.044 long from x = 0, 0.389 wide about y = 0, 0.288 high and 0.05 above the ground, z = 0, on four stilts
(S. Ahmed, G. Ramm, G. Faltin, SAE Technical Paper 840300, 1984). The file is what examples/lattice_ahmed.toml reads.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

LENGTH, WIDTH, HEIGHT = 1.044, 0.389, 0.288
NOSE, SLANT, CLEARANCE = 0.1, 0.222, 0.05
STILTS = [(x, y) for x in (0.202, 0.672) for y in (-0.1635, 0.1635)]
STILT = 0.015


def outline(half: float, slant: float = 0.0) -> np.ndarray:
    """Return corners ``(n, 2)`` of a rectangle about y = 0 whose front is round; the upper corner behind is cut."""
    turn = np.linspace(0.5 * np.pi, np.pi, 25)
    upper = np.stack([NOSE + NOSE * np.cos(turn), half - NOSE + NOSE * np.sin(turn)], axis=1)
    lower = (upper * (1.0, -1.0))[::-1]
    cut = SLANT * np.array([np.cos(slant), np.sin(slant)])
    back = [(LENGTH, -half), (LENGTH, half - cut[1]), (LENGTH - cut[0], half)]
    return np.concatenate([upper, lower, back])


def ahmed_body(path: Path, slant: float = 25.0) -> None:
    """Write the body; ``slant`` is the angle of its back in degrees."""
    try:
        import trimesh
        from manifold3d import CrossSection, Manifold
    except ImportError as error:
        raise SystemExit(f"{error.name} is not installed: pip install 'fluxloom[surface]'") from None
    side = CrossSection([outline(0.5 * HEIGHT, np.radians(slant))]).extrude(WIDTH).rotate((90.0, 0.0, 0.0))
    top = CrossSection([outline(0.5 * WIDTH)]).extrude(HEIGHT)
    middle = CLEARANCE + 0.5 * HEIGHT
    body = side.translate((0.0, 0.5 * WIDTH, middle)) ^ top.translate((0.0, 0.0, CLEARANCE))
    for x, y in STILTS:
        body += Manifold.cylinder(middle, STILT, circular_segments=24).translate((x, y, 0.0))
    mesh = body.to_mesh64()
    trimesh.Trimesh(mesh.vert_properties[:, :3], mesh.tri_verts.astype(np.int64)).export(str(path))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--slant", type=float, default=25.0, help="degrees (25)")
    given = parser.parse_args()
    ahmed_body(given.file, given.slant)
