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
    "in a list item": (
        "1. I look.\n    ```bash\n    cat <<X\n      a\n    X\n    ```",
        [("bash", "cat <<X\n  a\nX", True)],
    ),
    "in a list in a list": ("- a\n  - b\n\n    ~~~sh\n    ls\n    ~~~", [("sh", "ls", True)]),
    "behind its list item": ("- a\n  ```bash\nls\n```", [("bash", "", False), ("", "", False)]),
    "indented text in it": ("```bash\ncat <<X\n    ```\nX\n```", [("bash", "cat <<X\n    ```\nX", True)]),
    "quoted": ("> ```bash\n> rm a\n> ```\n\n```sh\nls\n```", [("sh", "ls", True)]),
    "behind a tag": ("<think>\nHm.\n</think>\n```bash\nls\n```", [("bash", "ls", True)]),
    "signs that end lines elsewhere": (
        "```bash\nprintf 'a\u2028\x0cb'\n```",
        [("bash", "printf 'a\u2028\x0cb'", True)],
    ),
    "nothing in it": ("```bash\n```", [("bash", "", True)]),
    "the opening alone": ("```bash", [("bash", "", False)]),
}


@all_rows("reply, blocks", FENCES)
def test_the_blocks_of_a_reply(reply: str, blocks: list[tuple[str, str, bool]]) -> None:
    assert [(block.language, block.text, block.is_closed) for block in fenced_blocks(reply)] == blocks
