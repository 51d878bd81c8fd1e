"""Requests over TLS to a proxy with a certificate that nothing vouches for."""

import ssl

from . import wire


def unverified(*protocols):
    """TLS to a certificate that nothing vouches for."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def over_tls(port, method, target, headers, body=None, alpn=None):
    """One request over TLS, nothing verified; the answer's bytes."""
    with unverified().wrap_socket(wire.socket.create_connection(("127.0.0.1", port), timeout=10)) as one:
        one.sendall(wire.request_bytes(method, target, [*headers, ("Connection", "close")], body))
        answer = b""
        while chunk := one.recv(65536):
            answer += chunk
    return answer
