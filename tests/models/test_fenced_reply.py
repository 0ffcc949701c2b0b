"""The fenced blocks of a reply."""

from __future__ import annotations

from rows import all_rows

from harness.models.fenced_reply import fenced_blocks

FENCES = {
    "none": ("Only words.", []),
    "one": ("Look:\n```bash\ncat a\n```\n", [("bash", "cat a", True)]),
    "two": ("```bash\na\n```\n```sh\nb\n```", [("bash", "a", True), ("sh", "b", True)]),
    "inside a longer one": ("````bash\ncat <<X\n```\nX\n````", [("bash", "cat <<X\n```\nX", True)]),
    "tildes": ("~~~bash\na\n```\nb\n~~~", [("bash", "a\n```\nb", True)]),
    "open": ("```bash\ncat a", [("bash", "cat a", False)]),
    "indented by four": ("    ```bash\n    cat a\n    ```", []),
    "more words": ("```Bash title=x\ncat a\n```", [("bash", "cat a", True)]),
    "inline code": ("```bash cat a```", []),
    "no language": ("```\ncat a\n```", [("", "cat a", True)]),
    "several lines": ("```bash\na\n\nb\n```", [("bash", "a\n\nb", True)]),
}


@all_rows("reply, blocks", FENCES)
def test_the_blocks_of_a_reply(reply: str, blocks: list[tuple[str, str, bool]]) -> None:
    assert [(block.language, block.text, block.is_closed) for block in fenced_blocks(reply)] == blocks
