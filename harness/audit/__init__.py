"""Questions to action logs; they read logs, and `files` and `unknown` also the files that calls changed; they write nothing.

calls.py joins the records of a call, and says who counts as a person. questions, refusals, endings and changes answer from
its calls; stats, sessions, difference and report/ count records besides. reading, instants, rows, disk, alignment and
filters are what these share.
"""
