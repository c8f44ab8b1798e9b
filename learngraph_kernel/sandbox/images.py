"""A picture from outside → the same picture without anything else: decoded completely, written anew.

Only what was decoded is written, so metadata, thumbnails, colour profiles, trailing data and polyglot tricks end here.
The orientation that a camera noted is applied first. Needs Pillow (`pip install 'learngraph[sandbox]'`).
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from learngraph_kernel.errors import Unavailable
from learngraph_kernel.sandbox.acquisition import ImageLimits, TypeRefused
from learngraph_kernel.sandbox.fetching import over
from learngraph_kernel.sandbox.media_types import HEAD_BYTES, detect

if TYPE_CHECKING:
    from PIL import Image

_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP"}
ACCEPTED = tuple(sorted(_FORMATS))
# Modes that a format writes; everything else is converted, with alpha if there was any.
_KEPT = {"PNG": {"1", "L", "LA", "RGB", "RGBA", "I;16"}, "JPEG": {"L", "RGB"}, "WEBP": {"RGB", "RGBA"}}
_MAX_DURATION = 60_000  # milliseconds that one frame may stand


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture written anew; `pixels` of one frame."""

    data: bytes
    media_type: str
    width: int
    height: int
    frames: int


def reencode(data: bytes, limits: ImageLimits) -> Picture:
    """Decodes a PNG, JPEG or WebP image completely and encodes it again in the same format, without metadata.

    Args:
        data: the file.
        limits: pixels are counted before anything is decoded.

    Raises:
        TypeRefused: it is none of the three, or is damaged.
        LimitExceeded: too many pixels or frames.
        Unavailable: Pillow is not installed.
    """
    image_module = _pillow()
    media_type = detect(data[:HEAD_BYTES])
    if media_type not in _FORMATS:
        raise TypeRefused(f"this is {media_type}, not a PNG, JPEG or WebP image", details={"detected": media_type})
    format_name = _FORMATS[media_type]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of what our own limits decide
            with image_module.open(io.BytesIO(data), formats=[format_name]) as source:
                frames = _frames(source, format_name, limits)
    except (OSError, ValueError, SyntaxError, EOFError, OverflowError, image_module.DecompressionBombError) as error:
        raise TypeRefused(f"the {format_name} image cannot be decoded", remedy="open it and save it again") from error
    written = _written(frames, format_name)
    return Picture(written, media_type, frames[0][0].width, frames[0][0].height, len(frames))


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise Unavailable(
            "images cannot be taken in: Pillow is not installed", remedy="pip install 'learngraph[sandbox]'"
        ) from error
    return Image


def _frames(source: Image.Image, format_name: str, limits: ImageLimits) -> list[tuple[Image.Image, int]]:
    """Every frame, clean, with how long it stands (milliseconds)."""
    # A camera's JPEG may carry previews and depth maps as further "frames"; they are dropped like all metadata.
    count = 1 if format_name == "JPEG" else int(getattr(source, "n_frames", 1))
    if count > limits.frames:
        raise over("frames", f"the image has {count} frames, more than {limits.frames}")
    if source.width * source.height * count > limits.pixels:
        raise over("pixels", f"the image has {source.width}×{source.height}×{count} pixels, more than {limits.pixels}")
    frames: list[tuple[Image.Image, int]] = []
    for index in range(count):
        if count > 1:
            source.seek(index)
        source.load()
        duration = source.info.get("duration", 0)
        duration = int(duration) if isinstance(duration, int | float) else 0
        frames.append((_clean(source, format_name), min(max(duration, 0), _MAX_DURATION)))
    return frames


def _clean(frame: Image.Image, format_name: str) -> Image.Image:
    """The pixels alone, upright, in a mode that the format writes."""
    from PIL import Image, ImageOps

    upright = ImageOps.exif_transpose(frame)
    if upright.mode not in _KEPT[format_name]:
        translucent = upright.has_transparency_data and format_name != "JPEG"
        upright = upright.convert("RGBA" if translucent else "RGB")
    elif "transparency" in upright.info and format_name != "JPEG":
        upright = upright.convert("RGBA")
    # A new image: it has no `info`, which the encoders would write out.
    clean = Image.new(upright.mode, upright.size)
    clean.paste(upright, (0, 0))
    return clean


def _written(frames: list[tuple[Image.Image, int]], format_name: str) -> bytes:
    first, *others = (frame for frame, _ in frames)
    options: dict[str, Any] = {"PNG": {}, "JPEG": {"quality": 92}, "WEBP": {"quality": 90}}[format_name]
    if others:
        durations = [duration for _, duration in frames]
        options = {**options, "save_all": True, "append_images": others, "duration": durations, "loop": 0}
    file = io.BytesIO()
    first.save(file, format_name, **options)
    return file.getvalue()
