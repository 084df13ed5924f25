from __future__ import annotations


class TrialFailure(Exception):
    """The trial cannot go on; the message is one sentence for the person at the terminal."""


def complaint(text: str) -> str:
    """The line of a log that says best why its process gave up."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    loud = [line for line in lines[-20:] if "FATAL" in line or "Error" in line or "error:" in line]
    return (loud or lines or ["it said nothing"])[-1]
