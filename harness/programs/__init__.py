"""What well-known programs do with their operands; data, pure.

Begin with model.py (what a model says), options.py (how words are held against one) and catalog.py (which file has which
program, loaded when asked). What several models say alike is in tables.py, gathered.py, refinements.py, pflag.py and
code_files.py; what is known of a program by its name is in facts.py, lists of names alone in runners.py and variables.py. Every other file holds the models of
one kind of program, in `PROGRAMS`; the model of git is git.py, its parts are git_*.py.
"""
