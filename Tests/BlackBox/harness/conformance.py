"""The modules of a plan of the OpenID Foundation's conformance suite, each with a test of ours and the result that it gets."""

PASSES = "passes"
#: The suite warns of something optional that Postern does not do.
WARNS = "passes with a warning"
#: The suite leaves the module out for a server whose discovery document says what our test checks.
SKIPPED = "left out"


class Plan(dict):
    """Modules by name, in the order of the plan: the result and the test. `prefix`: what all names begin with."""

    def __init__(self, name, prefix=""):
        super().__init__()
        self.name = name
        self._prefix = prefix

    def module(self, name, result=PASSES):
        """Declares the test of a module."""
        def declare(test):
            assert self._prefix + name not in self
            self[self._prefix + name] = (result, test)
            return test
        return declare

    def run(self, module, *arguments):
        """The test of a module."""
        self[module][1](*arguments)
