"""`python3 -m timing`."""

import sys

from .experiment import main

sys.exit(main())
