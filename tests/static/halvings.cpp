#include "prove.hpp"
#include <rondo/schedule/mixed_radix.hpp>
#include <rondo/schedule/ordered_halving.hpp>
#include <rondo/schedule/recursive_doubling.hpp>
#include <rondo/schedule/recursive_halving.hpp>

static_assert(static_proofs::proved_to_16<rondo::recursive_doubling>());
static_assert(static_proofs::proved_to_16<rondo::recursive_halving>());
static_assert(static_proofs::proved_to_16<rondo::ordered_halving>());
static_assert(static_proofs::proved_to_16<rondo::mixed_radix>());
