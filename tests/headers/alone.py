#!/usr/bin/env python3
"""Every header compiles alone: alone.py public|internal. With the public ones, all headers compile together, with each
compiler and standard and under hostile macros."""

import itertools
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import checks

# Names that system headers, X11 and logging libraries are known to define.
hostile = "I B0 small unix linux None Bool Status Success Always True False CHECK LOG DEBUG INFO WARNING ERROR".split()

internal = re.compile(r"rondo/(detail|run|(transports|adapters)/\w+)/")


def main():
    with tempfile.TemporaryDirectory() as folder:
        sources = pathlib.Path(folder)

        def case(compiler, standard, name, text):
            stem = f"{len(cases)}"
            source = sources / f"{stem}.cpp"
            source.write_text(text)
            output = sources / f"{stem}.o"
            cases.append((f"{name} with {compiler} {standard}",
                          lambda: checks.compile(compiler, source, output, f"-std={standard}")))

        cases = []
        names = checks.headers()
        everything = "".join(f"#include <{name}>\n" for name in names)
        # What a header forgets to include no compiler finds, so one is enough for each, and they take turns. What only
        # one compiler or standard refuses shows among all headers.
        turns = itertools.cycle(zip(checks.compilers, ("c++20", "c++2b")))
        wanted = [name for name in names if bool(internal.match(name)) == (sys.argv[1] == "internal")]
        for name, (compiler, standard) in zip(wanted, turns):
            case(compiler, standard, name, f"#include <{name}>\n#include <{name}>\n")
        for compiler in checks.compilers if sys.argv[1] == "public" else ():
            for standard in ("c++20", "c++2b"):
                case(compiler, standard, "all headers", everything)
            poison = [f"#undef {word}\n#define {word} a hostile macro\n" for word in hostile]
            case(compiler, "c++20", "hostile macros", "".join(poison) + everything)
        checks.report(cases)


main()
