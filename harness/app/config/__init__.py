"""`harness config` and `harness models`. The settings themselves are in harness/session/config."""
