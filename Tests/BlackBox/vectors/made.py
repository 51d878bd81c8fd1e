"""Every file of docs/vectors that is made without a server, by its kind."""

from . import ceremonies, challenges, errors, links, proofs, refresh, sign_in

KINDS = {
    "proofs": proofs, "refresh": refresh, "sign-in": sign_in, "errors": errors, "links": links, "challenges": challenges,
    "ceremonies": ceremonies,
}
