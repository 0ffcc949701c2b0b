"""Questions to action logs, answered from their records alone; reads logs, writes none, and runs nothing.

calls.py joins the records of a call; the other modules answer one question each.
"""
