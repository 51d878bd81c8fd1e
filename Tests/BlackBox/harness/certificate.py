"""A certificate for a proxy."""

import subprocess


def certificate(folder):
    """cert.pem and key.pem of a folder, and both in one file, as HAProxy wants them: its path."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=auth.example",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return both
