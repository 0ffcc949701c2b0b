"""What well-known programs do with their operands; data, pure."""
