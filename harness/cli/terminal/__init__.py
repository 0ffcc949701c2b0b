"""The terminal of interactive sessions: screen, keys, questions and the input line; judges nothing and runs nothing."""
