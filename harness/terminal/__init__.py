"""The person's side of the terminal: the screen, the line at the prompt, questions about calls.

Nothing here decides on a call or runs one.

Read first: screen.py, prompt_line.py and question_dialog.py, which are the heads of three groups.

The screen: all output in order; only one line is overwritten
    screen.py              output, permanent or temporary
    activity.py            the current activity and its duration: the overwritable line
    row_text.py            text from elsewhere made safe to show, in rows that fit
    markdown_stream.py     the model's text as it arrives
    settled_prose.py       the part of an unfinished paragraph that can be shown
    markdown_drawing.py    the same, drawn with rich
    highlighting.py        source code in colours
    diff_drawing.py        a difference, with line numbers and its changed words
    styles.py              every colour and sign

The line at the prompt
    prompt_line.py         the line, edited by prompt_toolkit
    line_keys.py           the keys of it
    line_drawing.py        its drawing; the sent text stays exact
    key_panel.py           the keys on one screen, at ?
    paste_folding.py       a long paste as one character of it
    completion.py          its menus: commands, arguments, files
    file_names.py          the names of files, for a menu
    line_history.py        earlier lines
    screen_reader_line.py  the same line without repainting
    type_ahead.py          keys typed during a turn

A question about a call
    approver.py            who asks: it puts one question after another
    question.py            what a question shows at a glance
    call_parts.py          the commands of a call, each with all that was judged of it
    question_help.py       what it says at ?
    effects_lines.py       what a run of a call may do
    question_pages.py      a page at a time, and whether all of it was seen
    dialog.py              what every question has, from its first row to the answer
    question_dialog.py     which key means what
    places_dialog.py       the same of places that a granted program changed
    choices.py             the keys, and how they are named
    grant_list.py          what may be granted, and for how long
    answer_line.py         words that are typed as an answer
    editor.py              a call or a line, in the person's own editor
    keys.py                single keys; typed-ahead and pasted ones are dropped
"""
