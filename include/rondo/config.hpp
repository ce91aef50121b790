#pragma once

/// The only macros of the library, apart from the version: both may be defined by the user before the first include.

/// Marks a function that also runs on a GPU. Empty unless a CUDA compiler reads the header.
#ifndef RONDO_HD
#ifdef __CUDACC__
#define RONDO_HD __host__ __device__
#else
#define RONDO_HD
#endif
#endif
