#include "calls.hpp"

#include "comm.hpp"
#include "cpp_types.hpp"

#include <cstddef>
#include <span>

namespace rondo::bench {
namespace {

void exchange_with_neighbours(comm& c, std::span<std::byte const> in, std::span<std::byte> out, call_options options) {
  auto const p = c.size();
  auto sending = c.start_send(in, (c.rank() + 1) % p, options);
  c.receive(out, (c.rank() + p - 1) % p, options);
  sending.wait();
}

/// Calls that only move bytes need one instantiation for all types.
void perform_move(comm& c, call const& what, std::span<std::byte const> in, std::span<std::byte> out) {
  call_options const options{.deadline = what.deadline, .algorithm = what.how};
  switch (what.what) {
    case collective::all_gather: c.all_gather(in, out, options); break;
    case collective::broadcast: c.broadcast(out, what.root, options); break;
    case collective::all_to_all: c.all_to_all(in, out, options); break;
    case collective::gather: c.gather(in, out, what.root, options); break;
    case collective::scatter: c.scatter(in, out, what.root, options); break;
    case collective::send_receive: exchange_with_neighbours(c, in, out, options); break;
    default: c.barrier(options);
  }
}

}  // namespace

algorithm chosen(comm& c, collective what, std::size_t bytes) noexcept { return c.chosen(what, bytes); }

bool has_out_of_place(collective what) noexcept { return what != collective::broadcast; }

bool has_in_place(collective what) noexcept {
  using enum collective;
  return what == all_reduce || what == reduce || what == broadcast || what == reduce_scatter || what == all_gather ||
         what == all_to_all;
}

void perform(comm& c, call const& what, shape const& s, void const* in, void* out) {
  if (reduces(what.what)) {
    with_type(what.type, [&]<class T>(std::type_identity<T>) {
      perform_reduction<T>(c, what, s, static_cast<T const*>(in), static_cast<T*>(out));
    });
    return;
  }
  auto const bytes = size_of(what.type);
  perform_move(c, what, {static_cast<std::byte const*>(in), s.in * bytes},
               {static_cast<std::byte*>(out), s.out * bytes});
}

}  // namespace rondo::bench
