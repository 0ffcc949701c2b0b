"""Reading bash: text in, commands or `Opaque` out; pure, and never a guess."""
