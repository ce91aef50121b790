#!/usr/bin/env python3
"""Asks nvcc about every kernel, for each architecture. Needs no GPU. Writes a table of registers into a file.

usage: nvcc.py FILE [ARCHITECTURE …]
"""

import concurrent.futures
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import checks

here = pathlib.Path(__file__).resolve().parent
architectures = sys.argv[2:] or ["sm_80", "sm_90", "sm_100"]
flags = ["-std=c++20", "--expt-relaxed-constexpr", "--extended-lambda", "-O3"]

# What c++filt says, and what a person would; one after the other.
plain_names = {"rondo::v0::": "", "device::": "", "detail::": "", " >": ">", "32ul": "32",
               "small_float<unsigned short, 8, 7, true>": "bfloat16",
               "small_float<unsigned short, 5, 10, true>": "float16",
               "small_float<unsigned char, 4, 3, false>": "float8_e4m3",
               "extreme_op<true>": "max_op", "signed char": "int8_t"}

# What each kind of kernel has to do at the scope of the system, by the start of its name.
acquires = {"": "ld.acquire.sys", "low_latency": "ld.relaxed.sys"}
releases = {"": "st.release.sys", "low_latency": "st.relaxed.sys"}


def compiler():
    return shutil.which("nvcc") or next(
        (str(path) for path in [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / "nvcc"]
         if path.exists()), None)


@functools.cache
def compiled(architecture):
    """(what ptxas says, the PTX), or what nvcc says if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler(), *flags, f"-arch={architecture}", "-Xptxas", "-v", "-Xptxas", "-warn-spills", "--keep",
                   "--keep-dir", folder, *(f"-I{root}" for root in checks.include_roots), "-c", here / "kernels.cu",
                   "-o", pathlib.Path(folder) / "kernels.o"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            return done.stdout, None
        return done.stdout, next(pathlib.Path(folder).glob("*.ptx")).read_text()


@functools.cache
def names(mangled):
    """Mangled -> readable."""
    plain = subprocess.run(["c++filt"], input="\n".join(mangled), stdout=subprocess.PIPE, text=True, check=True).stdout
    for long, short in plain_names.items():
        plain = plain.replace(long, short)
    return dict(zip(mangled, (re.search(r"enter<(.*)>\(", line)[1] for line in plain.splitlines())))


@functools.cache
def kernels(architecture):
    """name -> (registers, bytes of stack, bytes spilled, text in PTX)"""
    said, ptx = compiled(architecture)
    report = re.findall(r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
                        r"(\d+) bytes spill loads.*?Used (\d+) registers", said, re.S)
    readable = names(tuple(name for name, *_ in report))
    text = dict(re.findall(r"\.entry (\w+)\((.*?\n\}\n)", ptx, re.S))
    return {readable[name]: (int(registers), int(stack), int(stores) + int(loads), text[name])
            for name, stack, stores, loads, registers in report}


def compiles(architecture):
    said, ptx = compiled(architecture)
    return "" if ptx and "warning" not in said else said


def complaints(architecture, wrong):
    said, ptx = compiled(architecture)
    if ptx is None:
        return "does not compile"
    found = kernels(architecture)
    return "\n".join(filter(None, (wrong(name, *it) for name, it in found.items()))) if found else "no kernel is there"


def spills(name, registers, stack, spilled, ptx):
    return f"{name}: {spilled} bytes spilled, {stack} bytes of stack" if spilled or stack else ""


def scope(name, registers, stack, spilled, ptx):
    kind = next(start for start in sorted(acquires, reverse=True) if name.startswith(start))
    missing = [it for it in (acquires[kind], releases[kind]) if it not in ptx]
    narrow = re.findall(r"(?:ld|st|atom|red)\.(?:acquire|release|relaxed|acq_rel)\.(?:gpu|cta|cluster)\S*", ptx)
    volatile = re.findall(r"(?:ld|st)\.volatile\S*", ptx)
    return "".join(f"{name}: {what}\n" for what in [*(f"no {it}" for it in missing), *sorted({*narrow, *volatile})])


def cached(name, registers, stack, spilled, ptx):
    found = re.findall(r"ld\.global\.nc\S*|ldu\S*", ptx)
    return f"{name}: {len(found)} loads that do not see what peers store, {found[0]}" if found else ""


def table(path):
    columns = {it: kernels(it) for it in architectures if compiled(it)[1]}
    width = max(len(name) for column in columns.values() for name in column)
    lines = [f"{'registers of':{width}}" + "".join(f"{it:>8}" for it in columns)]
    lines += [f"{name:{width}}" + "".join(f"{column[name][0]:8}" for column in columns.values())
              for name in next(iter(columns.values()))]
    path.write_text("\n".join(lines) + "\n")
    return ""


def main():
    if not compiler():
        print("1..0 # SKIP nvcc is not installed")
        return
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compiled, architectures))
    cases = []
    for it in architectures:
        cases += [(f"all kernels compile for {it}", lambda it=it: compiles(it)),
                  (f"no kernel spills on {it}", lambda it=it: complaints(it, spills)),
                  (f"flags have the scope of the system on {it}", lambda it=it: complaints(it, scope)),
                  (f"peers' memory is read coherently on {it}", lambda it=it: complaints(it, cached))]
    checks.report(cases + [("registers are written down", lambda: table(pathlib.Path(sys.argv[1])))], parallel=False)


main()
