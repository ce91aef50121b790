#include <rondo/version.hpp>

static_assert(RONDO_VERSION == PROJECT_VERSION, "meson.build and rondo/version.hpp name different versions");
