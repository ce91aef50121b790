"""What the scripts under tests/ share: where the headers are, how to compile, and how to report (TAP)."""

import concurrent.futures
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
include_roots = [root / name for name in ("include", "transports", "cuda")]

warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
ccache = ["ccache"] if shutil.which("ccache") else []
compilers = [name for name in ("g++", "clang++") if shutil.which(name)]

# Headers over a third-party library: compiled only where pkg-config knows the library.
needs = {"rondo/transports/ucx.hpp": "ucx", "rondo/transports/verbs.hpp": "libibverbs"}


def headers():
    """Every header that can be compiled here, as users name it: rondo/…"""
    found = (path.relative_to(base).as_posix() for base in include_roots for path in base.rglob("*.hpp"))
    return sorted(name for name in found if name not in needs or not run(["pkg-config", "--exists", needs[name]]))


def run(command, **how):
    """'' if the command succeeds, else what it printed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    return "" if done.returncode == 0 else f"{shlex.join(map(str, command))}: exit {done.returncode}\n{done.stdout}"


def compile(compiler, source, output, *flags):
    """'' if the source compiles without a warning, else what the compiler said."""
    includes = [f"-I{base}" for base in include_roots]
    return run([*ccache, compiler, "-pthread", *warnings, *includes, *flags, "-c", source, "-o", output])


def report(cases, parallel=True):
    """Runs (name, function) pairs and prints them as TAP; a function returns '' or the complaint. Ends the program."""
    cases = list(cases)
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() if parallel else 1) as pool:
        complaints = pool.map(lambda case: case[1](), cases)
        for number, ((name, _), complaint) in enumerate(zip(cases, complaints), 1):
            print(f"{'not ok' if complaint else 'ok'} {number} - {name}")
            for line in complaint.splitlines():
                print(f"# {line}")
            sys.stdout.flush()
            failed += bool(complaint)
    sys.exit(failed > 0)
