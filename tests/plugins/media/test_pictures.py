"""Pictures by their bytes: what is recognised, what is left out, and what hostile files come to."""

from __future__ import annotations

import base64
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from picture_files import MAKERS, SECRET, blocks, chunk, exif, gif, jpeg, png, segment, webp, with_exif
from rows import all_rows

from harness.plugins.media.pictures import MAX_PICTURE_BYTES, PictureError, clean_picture, picture_type


@pytest.mark.parametrize("media_type", MAKERS)
def test_picture_type_is_recognised_and_kept(media_type: str) -> None:
    data = MAKERS[media_type](30, 20)
    seen = clean_picture(data)
    assert (picture_type(data), seen.media_type, seen.width, seen.height) == (media_type, media_type, 30, 20)
    assert (seen.data, seen.dropped) == (data, 0)


@pytest.mark.parametrize("media_type", MAKERS)
def test_metadata_and_trailing_data_are_removed(media_type: str) -> None:
    data = MAKERS[media_type](metadata=True)
    seen = clean_picture(data)
    assert SECRET in data
    assert SECRET not in seen.data
    assert seen.data == MAKERS[media_type]()
    assert seen.dropped == len(data) - len(seen.data)


def test_the_largest_picture_fits_as_base64() -> None:
    """ "image exceeds 5 MB maximum: 5272940 bytes > 5242880 bytes": what is counted is the text that is sent."""
    assert len(base64.b64encode(bytes(MAX_PICTURE_BYTES))) == 5_242_880


TURNED = {
    "upright": (exif(1), 0),
    "a phone held upright": (exif(6), 6),
    "in the other order of bytes": (exif(8, "<"), 8),
    "no such orientation": (exif(9), 0),
    "cut off": (exif(6)[:20], 0),
    "pointing behind its end": (b"MM\0*\xff\xff\xff\xff" + exif(6)[8:], 0),
    "none": (SECRET, 0),
}


@all_rows("media_type", ["image/png", "image/jpeg", "image/webp"])
@all_rows(("content", "orientation"), TURNED)
def test_orientation_is_the_only_metadata_kept(media_type: str, content: bytes, orientation: int) -> None:
    seen = clean_picture(with_exif(media_type, content)).data
    alone = exif(orientation)[:8] + b"\0\x01" + exif(orientation)[22:34] + bytes(4)
    assert seen == (with_exif(media_type, alone) if orientation else MAKERS[media_type]())
    assert clean_picture(seen).data == seen


HOSTILE = {
    "a png that lies about its width": (png(1_000_000, 1), "1,000,000 x 1 pixels"),
    "a png of too many pixels": (png(7_999, 7_999, pixels=b""), "63,984,001|40,000,000 in all"),
    "a png without size": (png(0, 4), "damaged"),
    "a png without pixels": (png()[:33] + chunk(b"IEND", b""), "no pixels"),
    "a png with a wrong sum": (png()[:-20] + b"x" + png()[-19:], "check sum"),
    "a png with a long chunk": (
        png()[:33] + struct.pack(">I4s", 0xFFFFFFFF, b"IDAT") + bytes(20),
        "longer than the file",
    ),
    "a png whose header comes twice": (png()[:33] + png()[8:], "not where it belongs"),
    "a png with an unknown critical part": (
        png()[:33] + chunk(b"EVIL", b"x") + png()[33:],
        "a required part is of an unknown kind",
    ),
    "a jpeg of two headers": (jpeg()[:-2] + segment(0xC0, b"\x08\0\x01\0\x01\x01\x01\x11\0") + b"\xff\xd9", "header"),
    "a jpeg without header": (b"\xff\xd8" + jpeg()[jpeg().index(b"\xff\xda") :], "before its header"),
    "a jpeg of nothing": (b"\xff\xd8\xff\xd9", "no pixels"),
    "a webp of a lying length": (b"RIFF\xff\xff\xff\xffWEBP" + webp()[12:], "cut off"),
    "a webp of a lying part": (webp()[:16] + b"\xff\xff\xff\x7f" + webp()[20:], "longer than the file"),
    "a gif whose frame is larger than its screen": (
        gif()[:-1] + b"\x2c" + struct.pack("<HHHHB", 0, 0, 65_535, 65_535, 0) + b"\x02" + blocks(b"x") + b";",
        "65,535 x 65,535",
    ),
    "a gif of an unknown block": (gif()[:-1] + b"\x99", "a block is of an unknown kind"),
    "a gif without end": (gif()[:-1], "cut off"),
    "too many bytes": (png() + bytes(MAX_PICTURE_BYTES), "more than 3,932,160 bytes"),
    "a gif of very many parts": (gif()[:-1] + b"\x21\xfe\0" * 100_001 + b";", "more than 100,000 parts"),
    "no picture": (b"hello, this is plain text", "only PNG, JPEG, WebP and GIF"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_damaged_or_mislabelled_picture_is_refused_in_words(name: str) -> None:
    data, words = HOSTILE[name]
    with pytest.raises(PictureError, match=words):
        clean_picture(data)


@pytest.mark.parametrize("media_type", MAKERS)
def test_every_beginning_of_a_picture_is_refused(media_type: str) -> None:
    data = MAKERS[media_type](metadata=True)
    whole = len(MAKERS[media_type](metadata=True)) - len(SECRET)
    for length in range(whole):
        with pytest.raises(PictureError):
            clean_picture(data[:length])


def test_script_appended_to_a_picture_is_removed() -> None:
    script = b"<script>fetch('//x')</script>PK\x03\x04"
    for made in (png(), jpeg(), webp(), gif()):
        assert script not in clean_picture(made + script).data


@given(st.sampled_from(sorted(MAKERS)), st.integers(0, 2**32))
def test_changed_bytes_give_a_picture_in_bounds_or_words(media_type: str, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(MAKERS[media_type](metadata=True))
    for _ in range(chance.randint(1, 6)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    try:
        seen = clean_picture(bytes(data))
    except PictureError:
        return
    assert 0 < seen.width <= 8_000
    assert 0 < seen.height <= 8_000
    assert clean_picture(seen.data) == type(seen)(
        media_type=seen.media_type, width=seen.width, height=seen.height, data=seen.data
    )
