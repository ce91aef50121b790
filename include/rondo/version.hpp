#pragma once

/// Version of the headers as major * 10000 + minor * 100 + patch.
#define RONDO_VERSION 100
#define RONDO_VERSION_MAJOR (RONDO_VERSION / 10000)
#define RONDO_VERSION_MINOR (RONDO_VERSION / 100 % 100)
#define RONDO_VERSION_PATCH (RONDO_VERSION % 100)
