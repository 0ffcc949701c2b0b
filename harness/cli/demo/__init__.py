"""`harness demo`: scenarios with a scripted model, played through the real client, gate and tools."""
