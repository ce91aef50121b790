#include "prove.hpp"
#include <rondo/schedule/binomial.hpp>
#include <rondo/schedule/double_tree.hpp>
#include <rondo/schedule/tree.hpp>

static_assert(static_proofs::proved_to_16<rondo::tree>());
static_assert(static_proofs::proved_to_16<rondo::double_tree>());
static_assert(static_proofs::proved_to_16<rondo::binomial>());
