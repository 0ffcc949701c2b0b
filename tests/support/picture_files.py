"""Small pictures, byte by byte, with and without what should not be sent; holds no test."""

from __future__ import annotations

import struct
import zlib

SECRET = b"taken at 48.8584 N 2.2945 E"
"""What stands in all metadata here."""


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int = 3, height: int = 2, *, metadata: bool = False, pixels: bytes | None = None) -> bytes:
    """Return a PNG, grey and 8 bits a pixel."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    rows = zlib.compress((b"\0" + b"\x80" * width) * height) if pixels is None else pixels
    told = chunk(b"tEXt", b"Comment\0" + SECRET) + chunk(b"eXIf", SECRET) + chunk(b"iTXt", SECRET) if metadata else b""
    behind = SECRET if metadata else b""
    return b"\x89PNG\r\n\x1a\n" + header + told + chunk(b"IDAT", rows) + chunk(b"IEND", b"") + behind


def segment(marker: int, content: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(content) + 2) + content


def jpeg(width: int = 3, height: int = 2, *, metadata: bool = False) -> bytes:
    """Return what has the form of a JPEG: header, a scan with a stuffed byte and a restart, and its end."""
    jfif = segment(0xE0, b"JFIF\0\x01\x02\0\0\x01\0\x01\0\0")
    told = b""
    if metadata:
        told = segment(0xE1, b"Exif\0\0" + SECRET) + segment(0xED, SECRET) + segment(0xFE, SECRET)
        told += segment(0xE0, b"JFXX\0" + SECRET)
    profile = segment(0xE2, b"ICC_PROFILE\0\x01\x01colours") + segment(0xEE, b"Adobe\0\x64\0\0\0\0\0")
    frame = segment(0xC0, struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\0")
    scan = segment(0xDA, b"\x01\x01\0\0\x3f\0") + b"\x12\xff\x00\x34\xff\xd0\x56"
    return b"\xff\xd8" + jfif + told + profile + frame + scan + b"\xff\xd9" + (SECRET if metadata else b"")


def riff(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("<I", len(content)) + content + b"\0" * (len(content) & 1)


def webp(width: int = 3, height: int = 2, *, metadata: bool = False) -> bytes:
    """Return what has the form of a lossless WebP."""
    flags = 0x0C if metadata else 0
    extended = riff(
        b"VP8X", bytes((flags, 0, 0, 0)) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    )
    told = riff(b"EXIF", SECRET) + riff(b"XMP ", SECRET) if metadata else b""
    pixels = riff(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + b"\x88\x88\x08")
    body = b"WEBP" + extended + pixels + told
    return b"RIFF" + struct.pack("<I", len(body)) + body + (SECRET if metadata else b"")


def blocks(*contents: bytes) -> bytes:
    return b"".join(bytes((len(one),)) + one for one in contents) + b"\0"


def gif(width: int = 3, height: int = 2, *, metadata: bool = False) -> bytes:
    """Return an animated GIF of one frame."""
    start = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    loop = b"\x21\xff" + blocks(b"NETSCAPE2.0", b"\x01\0\0")
    told = b"\x21\xfe" + blocks(SECRET) + b"\x21\xff" + blocks(b"XMP DataXMP", SECRET) if metadata else b""
    frame = b"\x21\xf9" + blocks(b"\0\x0a\0\0")
    image = b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02" + blocks(b"\x84\x51")
    return start + loop + told + frame + image + b";" + (SECRET if metadata else b"")


def exif(orientation: int, order: str = ">", *, told: bytes = SECRET) -> bytes:
    """Return a TIFF block of a camera's name, the orientation, and what else was told, in either order of bytes."""
    name = struct.pack(f"{order}HHII", 0x010F, 2, len(told), 38)
    turned = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, orientation, 0)
    start = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, 8)
    return start + struct.pack(f"{order}H", 2) + name + turned + bytes(4) + told


def with_exif(media_type: str, content: bytes) -> bytes:
    """Return a picture with such a block where its format has it."""
    match media_type:
        case "image/png":
            return png()[:33] + chunk(b"eXIf", content) + png()[33:]
        case "image/jpeg":
            return jpeg()[:20] + segment(0xE1, b"Exif\0\0" + content) + jpeg()[20:]
        case _:
            body = webp()[8:20] + b"\x08" + webp()[21:] + riff(b"EXIF", content)
            return b"RIFF" + struct.pack("<I", len(body)) + body


MAKERS = {"image/png": png, "image/jpeg": jpeg, "image/webp": webp, "image/gif": gif}
