"""Run one command and print its wall seconds, CPU seconds, peak MiB and exit code: launch.py OUTPUT COMMAND...

Small on purpose and run with `python -I -S`: the kernel never reports a child's peak memory below its parent's, so the
big driver must not be the parent. A command that does not end is killed.
"""

import os
import signal
import sys
import time

LIMIT_S = 180


def main() -> None:
    out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open("/dev/null", os.O_RDONLY)
    began = time.monotonic()
    streams = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out, 2)]
    pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, file_actions=streams)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
    signal.alarm(LIMIT_S)
    _, status, used = os.wait4(pid, 0)
    wall, cpu, peak = time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    print(wall, cpu, peak, os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
