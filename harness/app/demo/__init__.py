"""`harness demo`: scenarios with a scripted model, played through the real client, gate and tools.

Read first: demo_command.py, which plays a scenario. scenarios.py has the scenarios: a small broken project and a script
for each. first_run.py shows a user without a configured model how to get one, and offers the demo.
"""
