"""What well-known programs read, write, run and reach: data, and no I/O.

The shell package asks `model_of(name)` (catalog.py) for the `Program` of a command and `read_command(program, argv)`
(options.py) for its `Use`: what it does, which paths it reads and writes, which commands it runs, or the gap in the model.
A `Program` (program.py) lists options as a manual page does, each with the role of its value:

    "tidy": Program(options="-w|--width=TEXT -c|--config=READ -o|--output=WRITE --version:info", operands="READ...")

What a table cannot say is said by a function: `refine` gets what the tables said, `read` the words alone, `loses` names what
is destroyed (losses.py). A model vouches: what it does not name is not covered, and a person is asked. Read program.py first,
then options.py and any file of models.

To add a program, add a row to asked.py and lines on what it does to `tests/programs/asked.txt`. A program that needs more than
a row gets an entry in `PROGRAMS` in the file of its kind (shared.py has what several models say alike), and its name that
file's line in catalog.py. Names that rules and the shell must know besides are in runners.py and variables.py; catalog.py
answers questions about a program by its name alone.

Nothing here knows a policy, splits a command line into words, or looks at the disk.
"""
