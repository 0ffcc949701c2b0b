"""The one road of a call: judged, asked about, recorded, run, recorded. Start with gate.py."""
