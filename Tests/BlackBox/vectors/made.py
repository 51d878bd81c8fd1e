"""Every file of docs/vectors that is made without a server, by its kind."""

from . import challenges, errors, links, proofs

KINDS = {"proofs": proofs, "errors": errors, "links": links, "challenges": challenges}
