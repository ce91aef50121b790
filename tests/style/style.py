#!/usr/bin/env python3
"""The rules of the house that a machine can check. One case a rule; a complaint names file and line."""

import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import checks

root = checks.root
top_level = {"meson.build", "meson_options.txt", "include", "cuda", "transports", "tests", "bench", "examples", "docs",
             "README.md", "LICENSE", "build", "report.html"}
code = {".hpp", ".h", ".cuh", ".cpp", ".cu"}
macro_files = {"config.hpp", "version.hpp", "types.h"}  # those of NCCL are in types.h
text = code | {".py", ".sh", ".md", ".build", ".txt", ".in"}

files = [path for name in sorted(top_level - {"build"}) for path in [root / name, *sorted((root / name).rglob("*"))]
         if path.suffix in text and path.is_file() and not path.is_symlink()]
headers = [path for path in files if path.suffix in (".hpp", ".h", ".cuh") and path.parts[len(root.parts)] in
           ("include", "cuda", "transports")]


def lines(pattern, paths, why):
    """Complains about every line that matches."""
    found = re.compile(pattern)
    return "\n".join(f"{path.relative_to(root)}:{number}: {why}: {line.strip()}" for path in paths
                     for number, line in enumerate(path.read_text().splitlines(), 1) if found.search(line))


def top():
    extra = sorted(path.name for path in root.iterdir() if path.name not in top_level and not path.name.startswith("."))
    return "".join(f"{name}: only {', '.join(sorted(top_level))} may lie here\n" for name in extra)


def short_headers():
    return "".join(f"{path.relative_to(root)}: {count} lines, 400 at the most\n" for path in headers
                   if (count := len(path.read_text().splitlines())) > 400)


def pragma_once():
    return "".join(f"{path.relative_to(root)}: does not start with #pragma once\n" for path in headers
                   if not path.read_text().startswith("#pragma once\n"))


def few_macros():
    return lines(r"^\s*#\s*define", [path for path in headers if path.name not in macro_files],
                 "macros belong to config.hpp and version.hpp")


def inline_namespace():
    return "".join(f"{path.relative_to(root)}: opens no namespace rondo::inline v0\n" for path in headers
                   if path.suffix == ".hpp" and path.name not in macro_files | {"rondo.hpp"}
                   and "namespace rondo::inline v0" not in path.read_text())


def listed():
    """A test that no meson.build names would never run."""
    lists = {path.parent: path.read_text() for path in files if path.name == "meson.build"}

    def named(path):
        return any(f"'{path.relative_to(folder).as_posix()}'" in content or f"'{path.stem}'" in content
                   for folder, content in lists.items() if folder in path.parents)

    sources = [path for path in files if path.suffix == ".cpp" and path.parts[len(root.parts)] in
               ("tests", "bench", "examples") and not {"fail", "consumers", "odr"} & set(path.parts)]
    return "".join(f"{path.relative_to(root)}: no meson.build names it\n" for path in sources if not named(path))


def formatted():
    tool = shutil.which("clang-format")
    if not tool:
        return ""
    said = checks.run([tool, "--dry-run", "-Werror", *(path for path in files if path.suffix in code)])
    wrong = sorted({path.relative_to(root).as_posix() for path in files if f"\n{path}:" in said})
    return said and f"run: clang-format -i {' '.join(wrong)}\n"


def scripts():
    """Scripts that nothing runs here, such as those for a GPU, can be read by bash at least."""
    return "\n".join(filter(None, (checks.run(["bash", "-n", path]) for path in files if path.suffix == ".sh")))


def links():
    """Relative links of the manual lead somewhere, and every page of it can be reached from its index."""
    pages = [path for path in files if path.suffix == ".md"]
    prose = {page: re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S) for page in pages}
    targets = {page: [(page.parent / link.split("#")[0]).resolve() for link in
                      re.findall(r"\]\((?!\w+:|#)([^)]+)\)", text)] for page, text in prose.items()}
    dead = [f"{page.relative_to(root)}: leads to {target.relative_to(root)}, which does not exist"
            for page, found in targets.items() for target in found if not target.exists()]
    index = root / "docs" / "README.md"
    lost = [f"docs/README.md: does not lead to {page.relative_to(root)}" for page in pages
            if root / "docs" in page.parents and page != index and page not in targets[index]]
    return "\n".join(dead + lost)


def main():
    marks = "|".join(["TO" "DO", "FIX" "ME", "XX" "X", "HA" "CK"])
    checks.report([
        ("nothing foreign lies at the top level", top),
        ("headers have 400 lines at the most", short_headers),
        ("headers start with #pragma once", pragma_once),
        ("macros only in config.hpp, version.hpp and where they are NCCL's", few_macros),
        ("everything lives in namespace rondo::inline v0", inline_namespace),
        ("no left-over marks", lambda: lines(rf"\b({marks})\b", files, "left-over mark")),
        ("no path of one machine", lambda: lines(r"/(home|work|root)/[a-z]", files, "path of one machine")),
        ("scripts and build files have 120 columns", lambda: lines(
            r"^.{121}", [path for path in files if path.suffix in {".py", ".sh", ".build", ".txt"}], "too long")),
        ("no tabs, no trailing blanks", lambda: lines(r"\t|[ \t]$", files, "blank")),
        ("every test, bench and example is listed in a meson.build", listed),
        ("bash can read every script", scripts),
        ("the links of the manual lead somewhere, its index to every page", links),
        ("clang-format agrees" + ("" if shutil.which("clang-format") else " # SKIP not installed"), formatted),
    ])


main()
