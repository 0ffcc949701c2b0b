"""Text that is shown or read with care: made visible, strict JSON, TOML with the place of each key."""
