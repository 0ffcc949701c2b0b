"""The user's terminal: the screen, the line at the prompt, questions about calls.

This package neither decides on calls nor runs them.

Read first: screen.py, prompt_line.py and question_dialog.py, the main modules of the three groups.

The screen: all output in order; only one line is overwritten
    screen.py              output, permanent or temporary
    activity.py            the current activity and its duration: the overwritable line
    row_text.py            text from elsewhere made safe to show, in rows that fit
    markdown_stream.py     the model's text as it arrives
    settled_prose.py       the part of an unfinished paragraph that can be shown
    markdown_drawing.py    blocks of Markdown, drawn with rich
    highlighting.py        source code in colours
    diff_drawing.py        a diff, with line numbers and marks on changed words
    styles.py              every colour and sign

The line at the prompt
    prompt_line.py         the line, edited by prompt_toolkit
    line_keys.py           the keys of the line
    line_drawing.py        the drawing of the line; the sent text stays exact
    key_panel.py           a panel with all keys, at ?
    paste_folding.py       a long paste as one character of the line
    completion.py          the menus of the line: commands, arguments, files
    file_names.py          the names of files, for a menu
    line_history.py        earlier lines
    screen_reader_line.py  the line on terminals without repainting
    type_ahead.py          keys typed during a turn
    unmarked_paste.py      pastes that the terminal does not mark
    typing_times.py        the times of the last typed text and the last answer

A question about a call
    approver.py            the approver, which puts one question after another
    question.py            the rows of a question
    call_parts.py          the commands of a call, each with its verdicts
    question_help.py       the help of a question, at ?
    effects_lines.py       the effects that a call may have
    question_pages.py      rows page by page, and whether all were seen
    dialog.py              the common part of all questions, from the first row to the answer
    question_dialog.py     the question about a call, and its keys
    places_dialog.py       the question about places that a granted program changed
    choices.py             the keys and their names
    grant_list.py          the possible grants, and their durations
    answer_line.py         words typed as an answer
    editor.py              a call or a line in the user's own editor
    keys.py                single keys; typed-ahead and pasted ones are dropped
"""
