"""Format and size of a picture file, and the removal of its metadata.

PNG, JPEG, WebP and GIF files are parsed as containers, and their pixels are not decoded. Only the parts that affect the
display are kept. Metadata such as place, author and device is removed, and so are all bytes after the end of the
picture. The orientation is the only EXIF value that is kept.

INVARIANT: parsing is bounded by the size of the file and by `MOST_PARTS`. Each length in the file is checked against
the size of the file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from harness.record import Record

MAX_PICTURE_BYTES = 5 * 1024 * 1024 // 4 * 3
"""Maximum size of a picture in bytes. As Base64 it then has the maximum size of the Messages API, 5 MiB, which is the
lowest limit among the APIs in use (platform.claude.com/docs/en/build-with-claude/vision; "image exceeds 5 MB maximum",
anthropics/claude-code).
"""
MAX_SIDE = 8_000
"""Maximum width and height in pixels, from the same page."""
MAX_PIXELS = 40_000_000
"""Maximum number of pixels of one picture. Decoding needs four bytes per pixel."""
MOST_PARTS = 100_000
"""Maximum number of chunks, segments or blocks of a file."""
PROBE_BYTES = 16
"""Number of bytes at the start of a file that determine its type."""

PNG, JPEG, WEBP, GIF = "image/png", "image/jpeg", "image/webp", "image/gif"
TITLES = {PNG: "PNG", JPEG: "JPEG", WEBP: "WebP", GIF: "GIF"}


class PictureError(ValueError):
    """Raised if a picture is damaged, too large or of another format."""


class CleanPicture(Record):
    """A picture without metadata."""

    media_type: str
    width: int
    """Width in pixels, from the header."""
    height: int
    data: bytes
    dropped: int = 0
    """Number of bytes of the file that were left out."""


def picture_type(start: bytes) -> str:
    """Return the media type of a file that begins with these bytes (`PROBE_BYTES` are enough), or an empty string."""
    if start.startswith(_PNG_MARK):
        return PNG
    if start.startswith(b"\xff\xd8\xff"):
        return JPEG
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return WEBP
    return GIF if start[:6] in (b"GIF87a", b"GIF89a") else ""


def clean_picture(data: bytes) -> CleanPicture:
    """Return the picture in `data` without metadata. Raises PictureError if it is invalid, damaged or too large."""
    if len(data) > MAX_PICTURE_BYTES:
        raise PictureError(f"pictures of more than {MAX_PICTURE_BYTES:,} bytes are not sent; make it smaller")
    media_type = picture_type(data)
    match media_type:
        case "image/png":
            width, height, chunks = _png(data)
        case "image/jpeg":
            width, height, chunks = _jpeg(data)
        case "image/webp":
            width, height, chunks = _webp(data)
        case "image/gif":
            width, height, chunks = _gif(data)
        case _:
            raise PictureError("only PNG, JPEG, WebP and GIF are supported")
    _check_size(width, height)
    return CleanPicture(
        media_type=media_type, width=width, height=height, data=chunks, dropped=max(len(data) - len(chunks), 0)
    )


def _check_size(width: int, height: int) -> None:
    if not width or not height:
        raise PictureError(f"the picture is damaged: its header gives {width} x {height} pixels")
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise PictureError(
            f"the picture has {width:,} x {height:,} pixels; at most {MAX_SIDE:,} a side and {MAX_PIXELS:,} in all are "
            "sent; make it smaller"
        )


def _damaged(detail: str) -> PictureError:
    return PictureError(f"the picture is damaged: {detail}")


def _bounded_parts() -> Iterator[None]:
    """Yield once for each part of a file. Raises PictureError after MOST_PARTS parts."""
    for _ in range(MOST_PARTS):
        yield
    raise PictureError(f"the picture has more than {MOST_PARTS:,} parts")


_ORIENTATION, _SHORT = 0x0112, 3
"""EXIF tag of the orientation, and the type of its value (CIPA DC-008, 4.6.5)."""


def _orientation(exif: bytes) -> bytes:
    """Return an EXIF block that has only the orientation. Empty if the picture is upright or has no orientation."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4], "")
    try:
        (at,) = struct.unpack_from(f"{order}I", exif, 4) if order else (0,)
        (count,) = struct.unpack_from(f"{order}H", exif, at) if order else (0,)
        for place in range(at + 2, at + 2 + 12 * count, 12):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", exif, place)
            if (tag, kind) == (_ORIENTATION, _SHORT):
                entry = struct.pack(">HHIHH", _ORIENTATION, _SHORT, 1, value, 0)
                return b"MM\0*" + struct.pack(">IH", 8, 1) + entry + bytes(4) if 2 <= value <= 8 else b""
    except struct.error:
        pass  # the block is cut off
    return b""


_PNG_MARK = b"\x89PNG\r\n\x1a\n"
# Chunks that affect the display: www.w3.org/TR/png-3, section 11, and the three chunks of animated PNG.
_PNG_KEPT = frozenset(
    b"IHDR PLTE IDAT IEND tRNS cHRM gAMA iCCP sBIT sRGB cICP mDCV cLLI bKGD hIST pHYs sPLT acTL fcTL fdAT".split()
)


def _png(data: bytes) -> tuple[int, int, bytes]:
    chunks, width, height, has_pixels = [_PNG_MARK], 0, 0, False
    for kind, at, end in _png_chunks(data):
        if (kind == b"IHDR") is not (at == len(_PNG_MARK)):
            raise _damaged("its header is not where it belongs")
        if kind == b"IHDR":
            if end - at != 25:
                raise _damaged("its header has another length")
            width, height = struct.unpack_from(">II", data, at + 8)
        if kind in _PNG_KEPT:
            chunks.append(data[at:end])
        elif kind == b"eXIf" and (turned := _orientation(data[at + 8 : end - 4])):
            chunks.append(struct.pack(">I", len(turned)) + kind + turned + struct.pack(">I", zlib.crc32(kind + turned)))
        elif not kind[0] & 0x20:  # a capital first letter means a critical chunk (section 5.4)
            raise _damaged("a required part is of an unknown kind")
        has_pixels |= kind == b"IDAT"
    if not has_pixels:
        raise _damaged("the file has no pixels")
    return width, height, b"".join(chunks)


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield the kind, the start offset and the end offset of each chunk, up to and including IEND."""
    at = len(_PNG_MARK)
    for _ in _bounded_parts():
        if at + 12 > len(data):
            raise _damaged("a chunk is cut off")
        length, kind = struct.unpack_from(">I4s", data, at)
        end = at + 12 + length
        if end > len(data):
            raise _damaged("a chunk is longer than the file")
        if zlib.crc32(data[at + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
            raise _damaged("the check sum of a chunk is wrong")
        yield kind, at, end
        if kind == b"IEND":
            return
        at = end


_JPEG_ALONE = frozenset((0x01, *range(0xD0, 0xD8)))
"""Markers without a length: TEM, RST0 to RST7 (ITU T.81, table B.1)."""
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_EOI, _SOS, _COMMENT = 0xD9, 0xDA, 0xFE
_EXIF = b"Exif\0\0"


def _jpeg(data: bytes) -> tuple[int, int, bytes]:
    segments, size, scanned = [b"\xff\xd8"], (0, 0), False
    for marker, at, end in _jpeg_segments(data):
        segment = data[at:end]
        if marker in _JPEG_FRAMES:
            if len(segment) < 10 or size != (0, 0):
                raise _damaged("its header is invalid")
            size = (int.from_bytes(segment[7:9], "big"), int.from_bytes(segment[5:7], "big"))
        if _is_jpeg_kept(marker, segment[4:]):
            segments.append(_plain_jfif(segment) if marker == 0xE0 else segment)
        elif marker == 0xE1 and segment[4:10] == _EXIF and (turned := _orientation(segment[10:])):
            segments.append(b"\xff\xe1" + struct.pack(">H", 8 + len(turned)) + _EXIF + turned)
        if marker == _SOS:
            if size == (0, 0):
                raise _damaged("its pixels come before its header")
            scanned = True
    if not scanned:
        raise _damaged("the file has no pixels")
    return *size, b"".join((*segments, b"\xff\xd9"))


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the marker, the start offset and the end offset of each segment before EOI.

    A segment includes the pixel data that follows it.
    """
    at = 2
    for _ in _bounded_parts():
        if data[at : at + 1] != b"\xff":
            raise _damaged("a marker is missing")
        while data[at + 1 : at + 2] == b"\xff":  # fill bytes
            at += 1
        if at + 2 > len(data):
            raise _damaged("the file is cut off")
        marker = data[at + 1]
        if marker == _EOI:
            return
        end = at + 2
        if marker not in _JPEG_ALONE:
            length = int.from_bytes(data[at + 2 : at + 4], "big")
            end += length
            if length < 2 or end > len(data) or marker == 0xD8:
                raise _damaged("a segment is cut off")
        if marker == _SOS:
            end = _scan_end(data, end)
        yield marker, at, end
        at = end


def _is_jpeg_kept(marker: int, content: bytes) -> bool:
    """Return whether a segment is needed to show the picture.

    Of the application segments, only JFIF, colour profile and Adobe are kept. Comments are removed.
    """
    if marker == 0xE0:
        return content.startswith(b"JFIF\0")
    if marker == 0xE2:
        return content.startswith(b"ICC_PROFILE\0")
    if marker == 0xEE:
        return content.startswith(b"Adobe")
    return not (0xE1 <= marker <= 0xEF or marker == _COMMENT)


def _plain_jfif(segment: bytes) -> bytes:
    """Return a JFIF segment without its thumbnail (JFIF 1.02: 14 bytes before it)."""
    if len(segment) < 18:
        raise _damaged("a segment is cut off")
    return b"\xff\xe0\x00\x10" + segment[4:16] + b"\0\0"


def _scan_end(data: bytes, at: int) -> int:
    """Return the offset of the end of the entropy-coded data from `at` on.

    The data ends at the first marker that is not a restart. A byte FF before a zero is not a marker.
    """
    while (at := data.find(b"\xff", at)) >= 0 and at + 1 < len(data):
        following = data[at + 1]
        if following and following != 0xFF and not 0xD0 <= following <= 0xD7:
            return at
        at += 1 if following == 0xFF else 2
    raise _damaged("its pixels are cut off")


_WEBP_KEPT = frozenset((b"VP8 ", b"VP8L", b"ANIM", b"ANMF", b"ALPH", b"ICCP"))
_EXIF_FLAG, _XMP_FLAG = 0x08, 0x04
"""Flags in the first byte of VP8X: developers.google.com/speed/webp/docs/riff_container."""


def _webp(data: bytes) -> tuple[int, int, bytes]:
    chunks: list[bytes] = []
    size, has_pixels, turned = (0, 0), False, b""
    for kind, content in _webp_chunks(data):
        if kind in (b"VP8X", b"VP8L", b"VP8 ") and size == (0, 0):
            size = _webp_size(kind, content)
        if kind == b"VP8X" and content:
            chunks.append(_riff(kind, bytes((content[0] & ~(_EXIF_FLAG | _XMP_FLAG),)) + content[1:]))
        elif kind in _WEBP_KEPT:
            chunks.append(_riff(kind, content))
        elif kind == b"EXIF":
            turned = _orientation(content.removeprefix(_EXIF))
        has_pixels |= kind in (b"VP8 ", b"VP8L", b"ANMF")
    if not has_pixels:
        raise _damaged("the file has no pixels")
    if turned and chunks[0].startswith(b"VP8X"):
        chunks[0] = chunks[0][:8] + bytes((chunks[0][8] | _EXIF_FLAG,)) + chunks[0][9:]
        chunks.append(_riff(b"EXIF", turned))
    return *size, _riff(b"RIFF", b"WEBP" + b"".join(chunks))


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and the content of each chunk."""
    at, stop = 12, 8 + int.from_bytes(data[4:8], "little")
    if stop > len(data):
        raise _damaged("the file is cut off")
    for _ in _bounded_parts():
        if at >= stop:
            return
        if at + 8 > stop:
            raise _damaged("a chunk is cut off")
        kind, length = struct.unpack_from("<4sI", data, at)
        end = at + 8 + length
        if end > stop:
            raise _damaged("a chunk is longer than the file")
        yield kind, data[at + 8 : end]
        at = end + (length & 1)


def _riff(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("<I", len(content)) + content + b"\0" * (len(content) & 1)


def _webp_size(kind: bytes, content: bytes) -> tuple[int, int]:
    """Return width and height from the content of a chunk of this kind (RFC 9649, and RFC 6386, section 9.1)."""
    if len(content) < 10 and not (kind == b"VP8L" and len(content) >= 5):
        raise _damaged("its header is cut off")
    if kind == b"VP8X":
        return 1 + int.from_bytes(content[4:7], "little"), 1 + int.from_bytes(content[7:10], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(content[1:5], "little")
        if content[0] != 0x2F:
            raise _damaged("its header is invalid")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if content[3:6] != b"\x9d\x01\x2a":
        raise _damaged("its header is invalid")
    width, height = struct.unpack_from("<HH", content, 6)
    return width & 0x3FFF, height & 0x3FFF


_LOOPS = (b"NETSCAPE2.0", b"ANIMEXTS1.0")
"""Application extensions with the number of repetitions of an animation."""


def _gif(data: bytes) -> tuple[int, int, bytes]:
    if len(data) < 13:
        raise _damaged("its header is cut off")
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    at = 13 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
    blocks, has_pixels = [data[:at]], False
    for _ in _bounded_parts():
        if at >= len(data):
            raise _damaged("the file is cut off")
        first = data[at]
        if first == 0x3B:
            break
        if first == 0x2C:  # an image: descriptor of ten bytes, colour table, code size, data blocks
            if at + 11 > len(data):
                raise _damaged("an image is cut off")
            x, top, wide, high, image_flags = struct.unpack_from("<HHHHB", data, at + 1)
            # An image may be larger than the declared screen, and a decoder allocates memory for it.
            _check_size(max(x + wide, 1), max(top + high, 1))
            end = _blocks_end(data, at + 11 + (3 << (image_flags & 7) + 1 if image_flags & 0x80 else 0))
            blocks.append(data[at:end])
            has_pixels = True
        elif first == 0x21:
            end = _blocks_end(data, at + 2)
            label = data[at + 1]
            if label == 0xF9 or (label == 0xFF and data[at + 3 : at + 14] in _LOOPS and end - at <= 19):
                blocks.append(data[at:end])
        else:
            raise _damaged("a block is of an unknown kind")
        at = end
    if not has_pixels:
        raise _damaged("the file has no pixels")
    return width, height, b"".join((*blocks, b";"))


def _blocks_end(data: bytes, at: int) -> int:
    """Return the end offset of a sequence of sub-blocks, which is after the sub-block of length 0."""
    while at < len(data):
        length = data[at]
        at += 1 + length
        if not length:
            return at
    raise _damaged("the file is cut off")
