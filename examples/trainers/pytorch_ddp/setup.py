"""Builds the Python package rondo_torch against the PyTorch that is installed: pip install --no-build-isolation ."""

import pathlib

import setuptools
from torch.utils import cpp_extension

root = pathlib.Path(__file__).resolve().parents[3]

setuptools.setup(
    name="rondo_torch",
    version="0.1.0",
    description="rondo as a backend of torch.distributed",
    package_dir={"": "package"},
    packages=["rondo_torch"],
    ext_modules=[cpp_extension.CppExtension(
        "rondo_torch._backend",
        ["package/rondo_torch/backend.cpp"],
        include_dirs=[str(root / "include"), str(root / "transports")],
        extra_compile_args=["-std=c++20", "-g0", "-Wno-deprecated-declarations"],  # of PyTorch's own headers
    )],
    cmdclass={"build_ext": cpp_extension.BuildExtension.with_options(use_ninja=False)},
)
