#!/usr/bin/env python3
"""What must not compile does not, and says why.

A file here compiles as it stands. Each of its sections adds one mistake, and the sentence that the compiler must show:

    #ifdef FAIL_name_of_the_case
    // says: halving reorders operands
      … the mistake …
    #endif
"""

import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import checks

section = re.compile(r"^#ifdef (FAIL_\w+)\n\s*// says: (.+)$", re.M)


def refused(said, sentence):
    if not said:
        return "it compiled"
    # Compilers break and quote messages differently: compare words.
    return "" if " ".join(sentence.split()) in " ".join(said.split()) else f"nothing said: {sentence}\n{said}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        cases = []

        def compile(compiler, path, *flags):
            return checks.compile(compiler, path, f"{folder}/{len(flags)}-{compiler}-{path.stem}{''.join(flags)}.o",
                                  "-std=c++20", *flags)

        for path in sorted(pathlib.Path(__file__).resolve().parent.glob("*.cpp")):
            for compiler in checks.compilers:
                cases.append((f"{path.name} compiles with {compiler}", lambda c=compiler, p=path: compile(c, p)))
                for name, sentence in section.findall(path.read_text()):
                    cases.append((f"{path.name} {name} is refused by {compiler}",
                                  lambda c=compiler, p=path, n=name, s=sentence: refused(compile(c, p, f"-D{n}"), s)))
        checks.report(cases)


main()
