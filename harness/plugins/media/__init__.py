"""Conversion of pictures, PDF files and web pages for a model.

Read these first:
    plugin.py      the tools and readers that the plugin adds
    pictures.py    checks a picture and removes its metadata
    pdf_pages.py   pages of a PDF file as text; pdf_child.py reads them in a process behind walls
    web_fetch.py   the tool `web_fetch`; web_request.py fetches a page, html_child.py converts it to text

PDF files and web pages are parsed in separate processes behind walls. The pixels of pictures are not decoded.
"""
