from __future__ import annotations


class TrialFailure(Exception):
    """The trial cannot go on; the message is one sentence for the person at the terminal."""
