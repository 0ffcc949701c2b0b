"""What a person sees and types at: the screen, the line at the prompt, questions about calls.

Read first: screen.py (all that is written, in order, never again but for one line), question.py (what a question shows) and
question_dialog.py (which key means what), prompt_line.py (the line, edited by prompt_toolkit). styles.py has every colour
and sign; markdown_stream.py and markdown_drawing.py show what the model says, with rich. Text from elsewhere becomes rows in
row_text.py or lines in markdown_drawing.py, where it is made safe to show. Nothing here decides on a call or runs one.
"""
