"""``python -m refused_by_name``."""

import sys

from refused_by_name.command import main

sys.exit(main())
