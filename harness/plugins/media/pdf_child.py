"""The child process that extracts the text of a PDF. pdf_pages.py runs it by its path, behind walls.

`main` has the command-line arguments FIRST PAGES CHARACTERS, and reads the PDF from stdin.

It prints one JSON object per line: {"pages": n}, then {"page": n, "text": "..."} for each page from FIRST on, then
{"end": true} if it reached the last requested page. An error is {"error": "..."}.

INVARIANT: it imports no module of the harness, and its output is data.
"""

from __future__ import annotations

import io
import json
import resource
import sys

MEMORY_BYTES = 1024 * 1024 * 1024
CPU_SECONDS = 20
MAX_PDF_BYTES = 64 * 1024 * 1024


def main() -> None:
    """Limit this process, read the PDF, and print the pages."""
    for resource_kind, maximum in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(resource_kind, (maximum, maximum))
    first, pages, room = (int(word) for word in sys.argv[1:4])
    try:
        _print_pages(sys.stdin.buffer.read(MAX_PDF_BYTES + 1), first, pages, room)
    except MemoryError:
        _say({"error": f"it takes more than {MEMORY_BYTES:,} bytes of memory"})
    except RecursionError:
        _say({"error": "it is nested too deep"})
    except Exception as error:  # noqa: BLE001 - a library that reads hostile bytes may raise anything
        _say({"error": f"{type(error).__name__}: {error}"[:300]})


def _print_pages(data: bytes, first: int, pages: int, room: int) -> None:
    from pypdf import PdfReader

    if len(data) > MAX_PDF_BYTES:
        return _say({"error": f"the PDF has more than {MAX_PDF_BYTES:,} bytes"})
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return _say({"error": "it wants a password"})
    count = len(reader.pages)
    _say({"pages": count})
    for number in range(first, min(first + pages, count + 1)):
        text = reader.pages[number - 1].extract_text() or ""
        _say({"page": number, "text": text[: room + 1]})
        room -= len(text)
        if room <= 0:
            return None
    return _say({"end": True})


def _say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
