"""What a hostile or clumsy client sends, and what has to be true whatever it is.

`test_corpus.py` collects the cases; each is a name, the bytes of the request as they go over the wire, and the status and
code that it has to get. To add one, put a `Case` into the list of one of the modules `cases_*.py`.
"""
