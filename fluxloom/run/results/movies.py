"""Films of a plane field, a picture after the other: GIF with Pillow, MP4 with imageio and ffmpeg."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DeviceUnavailable, FluxloomError
from fluxloom.run.results.files import atomic

__all__ = ["Movie"]

_WIDEST = 960
_LEAST = 480
"""Films as MP4 are made at least as wide, a cell some pixels: the codec has one colour for two by two of them."""

_BODY = (58, 63, 71)
_SHADES = 255


class Movie:
    """A film of a scalar field.

    Parameters
    ----------
    path
        The file; its suffix, ``.gif`` or ``.mp4``, is the format. It is written at the end.
    low, high
        Values at both ends of the colours; what is beyond has the colour of the end.
    colours
        A colour map of matplotlib.
    rate
        Pictures a second.

    Raises
    ------
    DeviceUnavailable
        When a package that is needed is not installed, or ffmpeg is not there.

    Notes
    -----
    Pictures are kept as one byte a pixel. Fields of more than 960 columns are thinned out.
    """

    def __init__(self, path: Path, low: float, high: float, colours: str = "viridis", rate: int = 20) -> None:
        self.path, self.low, self.high, self.rate = path, low, high, rate
        wanted = {".gif": ("PIL", "viz"), ".mp4": ("imageio_ffmpeg", "movie")}
        if path.suffix not in wanted:
            raise FluxloomError(f"{path}: films are .gif or .mp4")
        for package, extra in (("matplotlib", "viz"), wanted[path.suffix]):
            if find_spec(package) is None:
                raise DeviceUnavailable(
                    f"a film {path.suffix} needs {package}, which is not installed: pip install 'fluxloom[{extra}]'"
                )
        if path.suffix == ".mp4":
            _check_ffmpeg()
        shades: Any = import_module("matplotlib").colormaps[colours](np.linspace(0.0, 1.0, _SHADES))
        self.palette = np.concatenate([np.round(255 * shades[:, :3]), [_BODY]]).astype(np.uint8)
        self.pictures: list[npt.NDArray[np.uint8]] = []

    def add(self, values: npt.NDArray[Any], hidden: npt.NDArray[np.bool_] | None = None) -> None:
        """Add a picture.

        Parameters
        ----------
        values
            ``(ny, nx)``, y upward.
        hidden
            What is drawn in grey, ``(ny, nx)``; values that are not finite are too.
        """
        thin = -(-values.shape[1] // _WIDEST)
        shown = np.asarray(values, dtype=np.float64)[::-thin, ::thin]
        grey = ~np.isfinite(shown) if hidden is None else ~np.isfinite(shown) | hidden[::-thin, ::thin]
        part = (np.where(grey, 0.0, shown) - self.low) / (self.high - self.low)
        index = np.clip(np.round(part * (_SHADES - 1)), 0, _SHADES - 1).astype(np.uint8)
        index[grey] = _SHADES
        self.pictures.append(index)

    def finish(self) -> bool:
        """Write the film, whole or not at all; return whether there is one: it has a picture at least."""
        if not self.pictures:
            return False
        with atomic(self.path) as temporary:
            if self.path.suffix == ".gif":
                self._gif(temporary)
            else:
                self._mp4(temporary)
        return True

    def _gif(self, path: Path) -> None:
        image: Any = import_module("PIL.Image")
        frames = [image.fromarray(index) for index in self.pictures]
        for frame in frames:
            frame.putpalette(self.palette.tobytes())
        pause = max(20, round(1000 / self.rate))  # milliseconds; browsers slow down what is faster
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=pause, loop=0, optimize=False)

    def _mp4(self, path: Path) -> None:
        ffmpeg: Any = import_module("imageio_ffmpeg")
        times = max(1, -(-_LEAST // self.pictures[0].shape[1]))
        height, width = (times * n // 2 * 2 for n in self.pictures[0].shape)  # H.264 takes even numbers
        writer = ffmpeg.write_frames(str(path), (width, height), fps=self.rate, macro_block_size=2)
        writer.send(None)
        try:
            for index in self.pictures:
                large = index.repeat(times, axis=0).repeat(times, axis=1)
                writer.send(np.ascontiguousarray(self.palette[large[:height, :width]]))
        finally:
            writer.close()


def _check_ffmpeg() -> None:
    """Raise `DeviceUnavailable` if there is no ffmpeg: before the run, not at its end."""
    ffmpeg: Any = import_module("imageio_ffmpeg")
    try:
        ffmpeg.get_ffmpeg_exe()
    except RuntimeError as error:
        raise DeviceUnavailable(
            f"a film .mp4 needs ffmpeg, which imageio does not find ({error}): install ffmpeg, or take .gif"
        ) from None
