"""`harness demo`: scenarios with a scripted model, played through the real client, gate and tools.

Read first: demo_command.py, which plays a scenario. scenarios.py has them: a small broken project each, and what the model
says. first_run.py tells a person who has named no model the ways to one, and plays the demo at a key.
"""
