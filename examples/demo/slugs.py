"""Turn titles into slugs for addresses."""


def slugify(title: str) -> str:
    """Return `title` as a slug."""
    return title.lower().replace(" ", "-")
