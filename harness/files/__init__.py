"""Files of the workspace: found, opened and replaced safely, kept before they change, and put back."""
