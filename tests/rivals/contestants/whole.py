"""Runs a command and prints what the whole process took as JSON.

Its own process because Linux counts the memory of whoever starts a process into the peak of the started one, so that
must be somebody small.
"""

import json
import os
import sys
import time

started = time.perf_counter()
silent = os.open(os.devnull, os.O_WRONLY)
quiet = [(os.POSIX_SPAWN_DUP2, silent, 1)]
process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(process, 0)
wall = time.perf_counter() - started
cpu = usage.ru_utime + usage.ru_stime
print(json.dumps({"wall": wall, "cpu": cpu, "rss": usage.ru_maxrss * 1024}))
sys.exit(os.waitstatus_to_exitcode(status))
