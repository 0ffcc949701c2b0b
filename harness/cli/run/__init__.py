"""`harness run`: one prompt, nobody to ask."""
