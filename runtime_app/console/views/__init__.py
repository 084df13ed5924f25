"""The pages: each parses, gets its rows through access, calls one verb and renders."""
