#!/usr/bin/env python3
"""An outside project builds against rondo in each of the three ways that the manual names, and runs."""

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
version = re.search(r"version: '([\d.]+)'", (checks.root / "meson.build").read_text())[1]


def project(name, folder):
    """A copy of the outside project, somewhere else."""
    copy = folder / name
    shutil.copytree(here / name, copy)
    shutil.copy(here / "main.cpp", copy)
    return copy


def install(prefix, folder):
    parts = [f"-D{part}=disabled" for part in ("tests", "bench", "examples", "ucx", "verbs", "cuda")]
    return (checks.run(["meson", "setup", f"--prefix={prefix}", *parts, folder / "build", checks.root])
            or checks.run(["meson", "install", "-C", folder / "build"]))


def ends_well(program):
    """'' if the program runs and prints the version."""
    done = subprocess.run([program], stdout=subprocess.PIPE, text=True)
    return "" if done.returncode == 0 and done.stdout.splitlines()[-1:] == [version] else (
        f"{program}: exit {done.returncode}, printed {done.stdout!r}, expected {version}")


def pkg_config(prefix, folder):
    environment = os.environ | {"PKG_CONFIG_PATH": f"{prefix}/share/pkgconfig"}
    said = subprocess.run(["pkg-config", "--cflags", "--libs", f"rondo = {version}"], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if said.returncode != 0:
        return said.stdout
    return (checks.run(["g++", "-std=c++20", here / "main.cpp", *said.stdout.split(), "-o", folder / "by-pkg-config"])
            or ends_well(folder / "by-pkg-config"))


def cmake(prefix, folder):
    copy = project("cmake", folder)
    return (checks.run(["cmake", "-S", copy, "-B", copy / "build", f"-DCMAKE_PREFIX_PATH={prefix}"])
            or checks.run(["cmake", "--build", copy / "build"]) or ends_well(copy / "build" / "trainer"))


def cmake_version(prefix, folder):
    """What a later minor version would promise, this one does not."""
    copy = project("cmake", folder / "later")
    major, minor, _ = map(int, version.split("."))
    lists = copy / "CMakeLists.txt"
    lists.write_text(re.sub(r"rondo [\d.]+", f"rondo {major}.{minor + 1}", lists.read_text()))
    said = checks.run(["cmake", "-S", copy, "-B", copy / "build", f"-DCMAKE_PREFIX_PATH={prefix}"])
    return "" if "requested version" in said else f"version {major}.{minor + 1} was found:\n{said}"


def meson(folder):
    """Without pkg-config and CMake to look anything up: a compiler and Meson are enough."""
    copy = project("meson", folder)
    (copy / "subprojects").mkdir()
    (copy / "subprojects" / "rondo").symlink_to(checks.root)
    alone = os.environ | {"PKG_CONFIG_LIBDIR": "/nonexistent", "PKG_CONFIG_PATH": "", "CMAKE_PREFIX_PATH": ""}
    complaint = (checks.run(["meson", "setup", copy / "build", copy, "--wrap-mode=nodownload"], env=alone)
                 or checks.run(["meson", "compile", "-C", copy / "build"])
                 or ends_well(copy / "build" / "trainer")
                 or checks.run(["meson", "install", "-C", copy / "build", "--destdir", folder / "destination"]))
    if complaint:
        return complaint
    installed = [path.name for path in (folder / "destination").rglob("*") if path.is_file()]
    return "" if installed == ["trainer"] else f"a subproject must install nothing of its own: {installed}"


def no_other_library(prefix, folder):
    """Whoever includes rondo.hpp and tcp.hpp reads no header of a network library and loads none."""
    source, program = folder / "tcp.cpp", folder / "tcp"
    source.write_text("#include <rondo/rondo.hpp>\n#include <rondo/transports/bootstrap.hpp>\n"
                      "#include <rondo/transports/tcp.hpp>\n"
                      "int main() {\n  auto ranks = rondo::join();\n"
                      "  rondo::communicator comm(ranks, rondo::tcp::connect(ranks));\n  comm.barrier();\n}\n")
    compile = ["g++", "-std=c++20", "-pthread", f"-I{prefix}/include", source]
    complaint = checks.run([*compile, "-o", program]) or checks.run([program])
    if complaint:
        return complaint
    read = subprocess.run([*compile, "-M"], stdout=subprocess.PIPE, text=True, check=True).stdout
    loaded = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    own = {"linux-vdso", "libstdc++", "libm", "libgcc_s", "libc", "ld-linux-x86-64", "ld-linux-aarch64"}
    foreign = [path for path in read.split() if re.search(r"/(infiniband|rdma|uc[pst]|cuda\w*)/|/mpi\.h$", path)]
    foreign += [name for name in map(pathlib.PurePath, re.findall(r"^\t(\S+)\.so\.", loaded, re.M))
                if name.name not in own]
    return f"more is needed: {' '.join(map(str, foreign))}" if foreign else ""


def training_programs(prefix):
    """Five ways to train, each in 40 lines at the most, need nothing but the installed headers."""
    names = ("01_hello", "08_synchronizer", "09_sharded_optimizer", "10_parameter_server", "11_pipeline")
    sources = [checks.root / "examples" / f"{name}.cpp" for name in names]
    long = [source.name for source in sources if len(source.read_text().splitlines()) > 40]
    if long:
        return f"longer than 40 lines: {' '.join(long)}"
    return "".join(checks.run(["g++", "-std=c++20", "-fsyntax-only", f"-I{prefix}/include", it]) for it in sources)


def every_header(prefix):
    missing = [name for name in checks.headers() if not (prefix / "include" / name).is_file()]
    return f"not installed: {' '.join(missing)}" if missing else ""


def move(folder):
    """The installed tree still works where it was moved to, with nothing left where it was."""
    before, after = folder / "before", folder / "after"
    complaint = install(before, folder)
    if complaint:
        return complaint
    before.rename(after)
    return cmake(after, folder)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix = folder / "prefix"
        (folder / "later").mkdir()
        (folder / "elsewhere").mkdir()
        installed = install(prefix, folder)
        checks.report([
            ("meson install", lambda: installed),
            ("every header is installed", lambda: every_header(prefix)),
            ("pkg-config", lambda: pkg_config(prefix, folder)),
            ("TCP needs no other library", lambda: no_other_library(prefix, folder)),
            ("programs of 40 lines train in five ways", lambda: training_programs(prefix)),
            ("CMake", lambda: cmake(prefix, folder)),
            ("CMake refuses another minor version", lambda: cmake_version(prefix, folder)),
            ("CMake, after the installed tree was moved", lambda: move(folder / "elsewhere")),
            ("Meson subproject", lambda: meson(folder)),
        ])


main()
