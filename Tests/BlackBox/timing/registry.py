"""What a pair of requests is, and the list of all of them."""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Pair:
    """Two classes of request that nobody may tell apart."""

    name: str
    case: str
    classes: tuple
    make: Callable
    #: Whether the answers wait for the fixed deadline.
    held: bool = True
    #: Whether both classes ask the database the same. Not where one is refused by its seal alone: that tells of no account.
    same_statements: bool = True


PAIRS = []


def pair(case, endpoint, x, y, **how):
    """Registers a function that makes pairs of requests."""
    def register(function):
        PAIRS.append(Pair(f"{case} {endpoint}: {x} / {y}", case, (x, y), function, **how))
        return function
    return register
