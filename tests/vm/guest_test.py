#!/usr/bin/env python3
"""What guest.sh and pair.sh promise."""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks

here = pathlib.Path(__file__).resolve().parent


def differs(script, *command, status=0, out="", err="", **how):
    """'' if the script ends with this status, prints exactly `out` and, among other things, `err`."""
    done = subprocess.run([here / script, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=280, **how)
    if (done.returncode, done.stdout) == (status, out) and err in done.stderr:
        return ""
    return f"exit {done.returncode} instead of {status}, printed:\n{done.stdout}and on standard error:\n{done.stderr}"


def streams():
    return differs("guest.sh", "-n", "none", "--", "sh", "-c", "echo out \"$1\"; echo err >&2; exit 7", "sh", "$a 'b'",
                   status=7, out="out $a 'b'\n", err="err\n")


def crash():
    return differs("guest.sh", "-n", "none", "--", "sh", "-c", "kill -SEGV $$", status=139)


def limit():
    return differs("guest.sh", "-n", "none", "-t", "2", "--", "sleep", "60", status=124, err="ran past 2 seconds")


def memory_only():
    """The guest reads the folder that it is started in, and what it writes there stays its own."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "mine").write_text("of the host\n")
        complaint = differs("guest.sh", "-n", "none", "--", "sh", "-c", "cat mine; echo of the guest >mine; cat mine",
                            out="of the host\nof the guest\n", cwd=folder)
        return complaint or ("" if (pathlib.Path(folder) / "mine").read_text() == "of the host\n" else
                             "the guest has written to the host")


def adapters():
    look = ("ls /sys/class/infiniband; echo $RONDO_TEST_NEEDS_RDMA; ulimit -l; "
            "tc qdisc show dev net1 | grep -o 'loss 2%'")
    return differs("guest.sh", "-n", "two", "-l", "2", "--", "bash", "-c", look,
                   out="rxe0\nrxe1\n1\nunlimited\nloss 2%\n")


meeting = """
import os, socket, time
if os.environ["GUEST"] == "0":
    with socket.create_server(("10.9.0.1", 5000)) as door:
        door.settimeout(60)
        print(door.accept()[1][0])
else:
    for _ in range(60):
        try:
            print(socket.create_connection(("10.9.0.1", 5000), 1).getpeername()[0])
            break
        except OSError:
            time.sleep(1)
"""


def two_guests():
    return differs("pair.sh", "--", "python3", "-c", meeting, out="10.9.0.2\n", err="[guest 1] 10.9.0.1\n")


checks.report([
    ("streams, status and arguments are those of the command", streams),
    ("a command that crashes", crash),
    ("a command that does not end", limit),
    ("the files of the host are not written", memory_only),
    ("two adapters on a wire that loses packets", adapters),
    ("two guests reach each other", two_guests),
], parallel=False)
