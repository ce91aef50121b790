"""What the scripts under tests/ share: where the headers are, how to compile, and how to report (TAP)."""

import concurrent.futures
import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
include_roots = [root / name for name in ("include", "transports", "cuda")]

warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
ccache = ["ccache"] if shutil.which("ccache") else []
compilers = [name for name in ("g++", "clang++") if shutil.which(name)]

# Headers over a third-party library, by the start of their names: compiled only where pkg-config knows one of these.
# Those of PyTorch define macros of everybody's names and take half a minute: the suite "torch" compiles them.
needs = {
    "rondo/adapters/mpi.": ("mpich", "ompi-c"),
    "rondo/adapters/torch": (),
    "rondo/adapters/nccl/cuda_memory.": ("cudart",),
    "rondo/transports/cuda_ipc.": ("cudart",),
    "rondo/transports/cuda_ipc/cuda_runtime.": ("cudart",),
    "rondo/transports/ucx": ("ucx",),
    "rondo/transports/verbs": ("libibverbs",),
}


def library_of(header):
    """The library that a header needs, as pkg-config names it: '' if none, None if it is not here."""
    wanted = next((modules for start, modules in needs.items() if header.startswith(start)), ("",))
    return next((module for module in wanted if not module or not run(["pkg-config", "--exists", module])), None)


def headers():
    """Every header that can be compiled here, as users name it: rondo/…"""
    found = (path.relative_to(base).as_posix() for base in include_roots for end in ("*.hpp", "*.h")
             for path in base.rglob(end))
    return sorted(name for name in found if library_of(name) is not None)


@functools.cache
def library_flags():
    """Where the headers of these libraries are; their warnings are not ours. No C++ bindings, which MPIs once had."""
    modules = sorted({library_of(header) for header in headers()} - {""})
    said = subprocess.run(["pkg-config", "--cflags-only-I", *modules], stdout=subprocess.PIPE, text=True, check=True)
    folders = said.stdout.replace("-I", "-isystem ") if modules else ""
    return [*shlex.split(folders), "-DMPICH_SKIP_MPICXX", "-DOMPI_SKIP_MPICXX"]


def run(command, **how):
    """'' if the command succeeds, else what it printed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    return "" if done.returncode == 0 else f"{shlex.join(map(str, command))}: exit {done.returncode}\n{done.stdout}"


def compile(compiler, source, output, *flags):
    """'' if the source compiles without a warning, else what the compiler said."""
    includes = [*(f"-I{base}" for base in include_roots), *library_flags()]
    return run([*ccache, compiler, "-pthread", *warnings, *includes, *flags, "-c", source, "-o", output])


def processes_of_ranks(launcher):
    """Process ids by rank, of what `rondo launch` with this process id has started."""
    def rank_of(pid):
        return int(re.search(rb"(?:^|\0)RANK=(\d+)", pathlib.Path(f"/proc/{pid}/environ").read_bytes())[1])

    children = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return {rank_of(pid): int(pid) for pid in children}


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
