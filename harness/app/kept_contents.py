"""The contents of a workspace's files that the state folder keeps."""

from __future__ import annotations

import os

from harness.files.before_images import BeforeImages
from harness.files.session_undo import KeptContents
from harness.files.tree_watch import store_of
from harness.session.state import State


def kept_contents(state: State, workspace: str) -> KeptContents:
    """Return the earlier contents of the files in a workspace."""
    return KeptContents(
        images=BeforeImages(state.before_images),
        store=store_of(state.trees, workspace),
        journals=os.path.join(state.undos, state.name_of(workspace)),
    )
