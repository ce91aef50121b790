#include "prove.hpp"
#include <rondo/schedule/bidirectional_ring.hpp>
#include <rondo/schedule/direct.hpp>
#include <rondo/schedule/ring.hpp>

static_assert(static_proofs::proved_to_16<rondo::ring>());
static_assert(static_proofs::proved_to_16<rondo::bidirectional_ring>());
static_assert(static_proofs::proved_to_16<rondo::direct>());
