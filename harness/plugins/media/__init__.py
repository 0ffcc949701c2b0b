"""Pictures, PDF files and web pages, made fit for a model.

Read these first:
    plugin.py      what the plugin adds
    pictures.py    checks a picture and takes out what only its maker knows
    pdf_pages.py   pages of a PDF file as text; pdf_child.py reads them in a process behind walls
    web_fetch.py   the tool `web_fetch`; web_request.py fetches, html_child.py makes text of a page

PDF files and web pages are parsed in a process of their own, behind walls. Of pictures no pixel is decoded.
"""
