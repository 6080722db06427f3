"""Importing this module is fatal, as importing a library with a broken shared object is."""

import os
import signal

os.kill(os.getpid(), signal.SIGSEGV)
