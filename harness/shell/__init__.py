"""Reads a bash command line into facets: the commands that would run, the files that they touch, or `Opaque`.

This package runs no commands and makes no decisions. It reads the disk through `Disk` alone. Any text that it cannot
parse fully is opaque: it never guesses.

Read facets.py first: its `read_commands` is the entry point. It works in two steps: text to tree, and tree to facets. To
fix a wrong reading, change the module of the part concerned: a word in words.py, a redirection in redirections.py,
the effect of a program in `programs/`.

Text to tree:

    parser.py        commands, lists, pipelines, loops: `parse`
    words.py         words and their expansions; word_pieces.py has quotes and brace lists
    redirections.py  `read_redirection`; and `apply_redirections`, for the second half
    conditions.py    tests between `[[` and `]]`
    cursor.py        the place in the text, and the bodies of here-documents
    syntax.py        the tree

Tree to facets:

    simple_commands.py  one command: its words, its redirections, and the commands that it runs
    builtins.py         `cd`, `export` and the like, which change the shell
    program_use.py      the use of a command by its program's model, and the targets of its paths
    printed_names.py    file names that one command of a pipeline prints for the next
    expansion.py        expansion of words; arithmetic.py has `$((...))`
    command_line.py     the state that all of these share for one line: its facets, the disk
    shell_state.py, loops.py  the known state of the shell between two commands; the changes of a loop
    disk.py             the interface to the disk

loose_words.py handles opaque text: it finds words that could be commands and paths, for strict rules alone.
"""
