"""Questions to action logs: statistics, reports, exports, SQL, differences, and rules that old approvals suggest.

Read questions.py first, then report/ (a page for people) and export/ (calls for other programs). suggestions/ proposes rules.
commands/ has the commands. No code here grants a permission or changes a log.
"""
