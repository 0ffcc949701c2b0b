"""`harness policy`: check, explain, test, replay, suggest, trust."""
