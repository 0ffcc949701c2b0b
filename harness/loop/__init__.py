"""The loop: ask the model, put its calls through the gate, answer, until a reply holds no calls. Start with agent.py."""
