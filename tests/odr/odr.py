#!/usr/bin/env python3
"""Two translation units that include every header link into one program, also when their settings differ."""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import checks

here = pathlib.Path(__file__).resolve().parent


def program(first, second, folder):
    """One unit by each compiler, with different settings; '' if they link and run."""
    objects = [folder / f"{first}.{second}.{unit}.o" for unit in ("one", "two")]
    return (checks.compile(first, here / "one.cpp", objects[0], "-std=c++20", "-O0", f"-I{folder}")
            or checks.compile(second, here / "two.cpp", objects[1], "-std=c++2b", "-O1", "-DNDEBUG", f"-I{folder}")
            or checks.run([second, "-pthread", *objects, "-o", folder / f"{first}.{second}"])
            or checks.run([folder / f"{first}.{second}"]))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "every_header.hpp").write_text("".join(f"#include <{header}>\n" for header in checks.headers()))
        pairs = list(zip(checks.compilers, reversed(checks.compilers)))
        checks.report((f"a unit by {first} c++20 -O0 and one by {second} c++2b -O1 -DNDEBUG",
                       lambda pair=(first, second): program(*pair, folder)) for first, second in pairs)


main()
