"""Reads a bash command line into facets: the commands that would run, the files that they touch, or `Opaque`.

Nothing is run here and nothing is decided. The disk is asked through `Disk` alone. What is not plainly understood is opaque:
it is never guessed at.

Read facets.py first: `read_commands` is the way in, and goes through two halves. A reading that is wrong is mended where its
part stands: a word in words.py, a redirection in redirections.py, what a program does in `programs/`.

Text to tree:
    parser.py        commands, lists, pipelines, loops: `parse`
    words.py         words and their expansions; word_pieces.py has quotes and brace lists
    redirections.py  `read_redirection`; and `apply_redirections`, for the second half
    conditions.py    what stands between `[[` and `]]`
    cursor.py        the place in the text, and the bodies of here-documents
    syntax.py        the tree

Tree to facets:
    simple_commands.py  one command: its words, its redirections, and what it runs in turn
    builtins.py         `cd`, `export` and the like, which change the shell
    program_use.py      what the model of a program says, and where its paths lead
    printed_names.py    names of files that go from one command of a pipeline to the next
    expansion.py        what words expand to; arithmetic.py has `$((...))`
    command_line.py     what all of these share of one line: its facets, the disk
    shell_state.py, loops.py  what is known of the shell between two commands; what a loop changes
    disk.py             what is asked of the disk

loose_words.py takes over where the text is opaque: it finds what could be commands and paths, for strict rules alone.
"""
