"""Drives the `postern` binary from outside: a real PostgreSQL, a real SMTP server, raw HTTP."""
