"""Adapters: one module for each wire format, behind the protocol in model.py."""
