from __future__ import annotations

import io
import struct
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo

from learngraph_kernel.errors import BadInput
from learngraph_kernel.sandbox.acquire import acquire_images, image_request
from learngraph_kernel.sandbox.acquisition import ApprovalNeeded, ImageLimits, LimitExceeded, TypeRefused
from learngraph_kernel.sandbox.images import reencode
from learngraph_kernel.sandbox.receipts import Receipt
from tests.sandbox.conftest import World

SECRET = b"made in the kitchen"


def picture(mode: str = "RGB", size: tuple[int, int] = (8, 6)) -> Image.Image:
    image = Image.new("RGBA", size, (200, 30, 30, 255))
    image.paste((10, 20, 230, 128), (0, 0, size[0] // 2, size[1]))
    return image.convert(mode)


def encoded(format_name: str, mode: str = "RGB", **options: Any) -> bytes:
    file = io.BytesIO()
    options.pop("image", picture(mode)).save(file, format_name, **options)
    return file.getvalue()


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def exif() -> bytes:
    values = Image.Exif()
    values[0x010E] = SECRET.decode()  # ImageDescription
    values[0x0112] = 6  # Orientation: the top is at the right
    return values.tobytes()


def with_everything(format_name: str) -> bytes:
    """A picture with a description, a colour profile, a comment and something after its end."""
    options: dict[str, Any] = {
        "exif": exif(), "icc_profile": ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    }  # fmt: skip
    if format_name == "PNG":
        options["pnginfo"] = PngInfo()
        options["pnginfo"].add_text("Comment", SECRET.decode())
    if format_name == "JPEG":
        options["comment"] = SECRET
    if format_name == "WEBP":
        options["xmp"] = SECRET
    return encoded(format_name, **options) + b"<script>" + SECRET


@pytest.mark.parametrize("format_name", ["PNG", "JPEG", "WEBP"])
def test_only_the_pixels_of_a_picture_are_kept(format_name: str) -> None:
    before = with_everything(format_name)
    assert SECRET in before
    after = reencode(before, ImageLimits())
    assert SECRET not in after.data
    image = opened(after.data)
    assert image.format == format_name
    assert not {"exif", "icc_profile", "comment", "xmp", "Comment"} & set(image.info)
    assert (image.size, after.width, after.height) == ((6, 8), 6, 8)  # turned upright before the note was dropped


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_png_pixels_come_through_unchanged(mode: str) -> None:
    image = picture("L").convert("I").convert("I;16") if mode == "I;16" else picture(mode)
    after = opened(reencode(encoded("PNG", image=image), ImageLimits()).data)
    # A palette becomes colours; everything else stays as it is.
    expected = image if mode != "P" else image.convert(after.mode)
    assert (after.mode, after.tobytes()) == (expected.mode, expected.tobytes())


def test_a_cmyk_jpeg_becomes_rgb() -> None:
    assert opened(reencode(encoded("JPEG", "CMYK"), ImageLimits()).data).mode == "RGB"


def test_a_camera_jpeg_with_a_second_picture_loses_it() -> None:
    data = encoded("MPO", save_all=True, append_images=[Image.new("RGB", (8, 6), (0, 255, 0))])
    after = reencode(data, ImageLimits())
    assert (after.frames, opened(after.data).format, after.data.count(b"\xff\xd8\xff")) == (1, "JPEG", 1)


@pytest.mark.parametrize("format_name", ["PNG", "WEBP"])
def test_an_animation_keeps_its_frames(format_name: str) -> None:
    other = Image.new("RGB", (8, 6), (0, 255, 0))
    data = encoded(format_name, save_all=True, append_images=[other], duration=[100, 200], loop=0)
    after = reencode(data, ImageLimits())
    assert (after.frames, opened(after.data).n_frames) == (2, 2)  # type: ignore[attr-defined]


REFUSED = {
    "gif": encoded("GIF", "P"), "bmp": encoded("BMP"), "tiff": encoded("TIFF"), "ico": encoded("ICO"),
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>", "html": b"<html>", "pdf": b"%PDF-1.4", "nothing": b"",
    "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n", "a png in name": b"\x89PNG\r\n\x1a\n" + b"\0" * 100,
    "half a png": encoded("PNG")[:60], "half a jpeg": encoded("JPEG")[:200], "half a webp": encoded("WEBP")[:30],
    "a png with a bad sum": encoded("PNG").replace(b"IDAT", b"IDAX"), "a jpeg of zeros": b"\xff\xd8\xff" + b"\0" * 500,
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_whole_png_jpeg_or_webp_is_refused(name: str) -> None:
    with pytest.raises(TypeRefused):
        reencode(REFUSED[name], ImageLimits())


def png_bomb(width: int, height: int) -> bytes:
    """A small file that claims to be a large picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 9000))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("size", [(7000, 7000), (12000, 12000)])
def test_pixels_are_counted_before_they_are_decoded(size: tuple[int, int]) -> None:
    began = time.monotonic()
    with pytest.raises(LimitExceeded) as caught:
        reencode(png_bomb(*size), ImageLimits())
    assert caught.value.details["limit"] == "pixels"
    assert time.monotonic() - began < 0.5


def test_a_picture_of_absurd_size_is_refused() -> None:
    with pytest.raises((LimitExceeded, TypeRefused)):
        reencode(png_bomb(2**31 - 1, 2**31 - 1), ImageLimits())


def test_frames_are_limited() -> None:
    others = [Image.new("RGB", (8, 6), (60 * number, 0, 0)) for number in range(4)]
    data = encoded("WEBP", save_all=True, append_images=others)
    with pytest.raises(LimitExceeded) as caught:
        reencode(data, ImageLimits(frames=3))
    assert caught.value.details["limit"] == "frames"


# Over the wire


def urls(count: int) -> list[str]:
    return [f"https://files.example/{number}.png" for number in range(count)]


def test_one_failure_does_not_stop_the_others(world: World) -> None:
    world.site.serve("/0.png", encoded("PNG"), Content_Type="image/png")
    world.site.serve("/1.png", b"<html>not a picture", Content_Type="image/png")
    world.site.serve("/3.png", encoded("JPEG"), Content_Type="image/png")
    world.site.serve("/4.png", encoded("WEBP"))
    asked = [*urls(5), "https://127.0.0.1/5.png"]
    for url in asked[:4]:
        world.allow(image_request(url))
    got = acquire_images(asked, world.gate)
    codes = [item.detected_type if isinstance(item, Receipt) else item.code for item in got]
    assert codes == [
        "image/png", "acquisition_type", "acquisition_failed", "image/jpeg", "approval_needed", "url_refused"
    ]  # fmt: skip
    assert isinstance(got[4], ApprovalNeeded)
    assert isinstance(got[3], Receipt)
    assert (got[3].declared_type, got[3].kind) == ("image/png", "image")
    assert opened(world.store.artifacts.read(got[3].sha256)).format == "JPEG"


def test_eight_images_are_fetched_at_once(world: World) -> None:
    together = threading.Barrier(8, timeout=20)

    def answer(request: BaseHTTPRequestHandler) -> None:
        together.wait()  # breaks unless all eight are there
        body = encoded("PNG")
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    for number in range(8):
        world.site.routes[f"/{number}.png"] = answer
        world.allow(image_request(urls(8)[number]))
    assert all(isinstance(item, Receipt) for item in acquire_images(urls(8), world.gate))


def test_more_than_eight_are_refused_at_once(world: World) -> None:
    with pytest.raises(BadInput, match="at most 8"):
        acquire_images(urls(9), world.gate)


def test_the_wire_bytes_of_an_image_are_limited(world: World) -> None:
    world.site.serve("/0.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 5000)
    limits = ImageLimits(wire_bytes=2000)
    world.allow(image_request(urls(1)[0], limits=limits))
    (error,) = acquire_images(urls(1), world.gate, limits=limits)
    assert isinstance(error, LimitExceeded)
    assert world.artifacts() == 0
