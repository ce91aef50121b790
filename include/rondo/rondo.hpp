#pragma once

/// Everything that needs no transport. Add the transports that you use: <rondo/transports/shm.hpp>, …

#include <rondo/algorithm.hpp>
#include <rondo/bfloat16.hpp>
#include <rondo/communicator.hpp>
#include <rondo/error.hpp>
#include <rondo/explain.hpp>
#include <rondo/float16.hpp>
#include <rondo/float8.hpp>
#include <rondo/group.hpp>
#include <rondo/ops.hpp>
#include <rondo/options.hpp>
#include <rondo/policy.hpp>
#include <rondo/schedule.hpp>
#include <rondo/schedule/cost.hpp>
#include <rondo/schedule/svg.hpp>
#include <rondo/schedule/terms.hpp>
#include <rondo/schedule/verify.hpp>
#include <rondo/select.hpp>
#include <rondo/transport.hpp>
#include <rondo/types.hpp>
#include <rondo/version.hpp>
#include <rondo/work.hpp>
