#pragma once

#include <rondo/adapters/nccl/call_group.hpp>
#include <rondo/adapters/nccl/handles.hpp>
#include <rondo/adapters/nccl/perform.hpp>
#include <rondo/adapters/nccl/setup.hpp>
#include <rondo/adapters/nccl/types.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>

#if defined(RONDO_WITH_CUDA) || defined(__CUDA_RUNTIME_API_H__)
#include <rondo/adapters/nccl/cuda_memory.hpp>
#endif

/// The calls of NCCL that trainers make, done by rondo: a program changes an include, or finds this file first.
///
/// All of it is inline C++20: names, values and arguments are those of NCCL 2.27, but there is nothing to link, and no
/// C file can include it. Between processes and hosts the ranks are connected as `multi` connects them;
/// RONDO_TRANSPORTS, RONDO_HOSTID, RONDO_SOCKET_IFNAME and RONDO_POLICY count.
///
/// Buffers are memory of the host. Where <cuda_runtime.h> was included before, or RONDO_WITH_CUDA is defined, they may
/// also be memory of a device, which is copied through pinned memory of the host, on the stream of the call. Otherwise
/// streams mean nothing and may be anything.
///
/// NCCL enqueues a call; here a call is done when the function returns, and those of a group when the outermost
/// ncclGroupEnd returns: never earlier than NCCL promises it, often later. A send without a group may wait for its
/// receive. Every call has a deadline, 30 minutes or the seconds in RONDO_NCCL_DEADLINE.
///
/// Every error comes with a sentence, which ncclGetLastError returns:
///
///     ncclInvalidArgument     an argument that no call could accept; the communicator stays usable
///     ncclInvalidUsage        calls that do not belong together, or ranks that made different calls
///     ncclRemoteError         a rank died, left or aborted: the sentence says which
///     ncclTimeout             the deadline has passed: the sentence says which rank is late
///     ncclSystemError         ranks cannot be joined, memory is short
///     ncclUnhandledCudaError  CUDA reports an error
///
/// After an error of a call that was under way the communicator is of no use to any rank.

namespace rondo::inline v0::nccl {

/// attempt() for what may stand in a group, which a refused call spoils.
template <class F>
ncclResult_t attempt_in_group(F&& f) noexcept {
  auto const code = attempt(f);
  if (code != ncclSuccess) call_group::mine().spoil(last_status());
  return code;
}

/// A call of collective C: made at once, or written down for the end of the group.
template <collective C>
ncclResult_t submit(ncclComm_t handle, invocation call, ncclRedOp_t op = ncclSum) noexcept {
  return attempt_in_group([&] {
    call.on = handles::instance().find(handle);
    (void)size_of(call.type);
    call.op = call.on->find(op, call.type);
    call.what = C;
    call.run = run_call<C>;
    call.start = start_call<C>;
    call_group::mine().submit(std::move(call));
  });
}

template <class F>
ncclResult_t ask(ncclComm_t handle, int* answer, F&& f) noexcept {
  return attempt([&] {
    require(answer, ncclInvalidArgument, "there is no place for the answer: pass a pointer that is not NULL");
    *answer = f(*handles::instance().find(handle));
  });
}

inline ncclResult_t unsupported(char const* instead) noexcept {
  return attempt([&] { require(false, ncclInvalidUsage, instead); });
}

}  // namespace rondo::inline v0::nccl

/// 22705: what of NCCL can be expected.
inline ncclResult_t ncclGetVersion(int* version) {
  return rondo::nccl::attempt([&] {
    rondo::nccl::require(version, ncclInvalidArgument, "there is no place for the version: pass a pointer");
    *version = NCCL_VERSION_CODE;
  });
}

/// What the number means; what happened says ncclGetLastError.
inline char const* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "CUDA reports an error";
    case ncclSystemError: return "the ranks cannot be joined, or the system refuses something";
    case ncclInternalError: return "rondo has a fault";
    case ncclInvalidArgument: return "an argument that no call could accept";
    case ncclInvalidUsage: return "calls that do not belong together, or ranks that made different calls";
    case ncclRemoteError: return "another rank died, left or aborted";
    case ncclInProgress: return "not done yet";
    case ncclTimeout: return "a rank did not come before the deadline";
    default: return "no result of NCCL";
  }
}

/// The sentence of the last error of this thread, else of the last one on the communicator; empty if there was none.
/// `comm` may be NULL. Valid until this thread asks again.
inline char const* ncclGetLastError(ncclComm_t comm) {
  static thread_local std::string kept;
  kept = rondo::nccl::last_status().sentence;
  if (kept.empty() && comm)
    (void)rondo::nccl::attempt([&] { kept = rondo::nccl::handles::instance().find(comm)->last().sentence; });
  return kept.c_str();
}

/// Opens a lobby in this process, where the ranks of one communicator meet: it has to live until all have. An id is a
/// secret: whoever has it can join.
inline ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return rondo::nccl::attempt([&] {
    rondo::nccl::require(id, ncclInvalidArgument, "there is no place for the id: pass a pointer that is not NULL");
    *id = rondo::nccl::lobby::open();
  });
}

/// Blocks until all ranks have called, or in a group until its end. Ranks may be processes and threads, anywhere.
inline ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank,
                                           ncclConfig_t* config) {
  using namespace rondo::nccl;
  return attempt_in_group([&] {
    require(comm, ncclInvalidArgument, "there is no place for the communicator: pass a pointer that is not NULL");
    *comm = nullptr;
    check(config);
    check_place(nranks, rank);
    call_group::mine().set_up([=] { *comm = handles::instance().add(make_comm(id, nranks, rank)); });
  });
}
inline ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

/// All ranks meet at the first id.
inline ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int nranks, int rank, int nids, ncclUniqueId* ids,
                                             ncclConfig_t* config) {
  if (nids < 1 || !ids) return rondo::nccl::unsupported("ncclCommInitRankScalable needs an id: pass at least one");
  return ncclCommInitRankConfig(comm, nranks, ids[0], rank, config);
}

/// Makes all ranks of a communicator in this process, connected by its memory. One thread may use them all, if it puts
/// the calls that belong together into a group; or a thread each. `devlist` only decides what ncclCommCuDevice says.
inline ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ndev, int const* devlist) {
  using namespace rondo::nccl;
  return attempt([&] {
    require(comms && ndev > 0, ncclInvalidArgument, "ncclCommInitAll needs a place for at least one communicator");
    auto made = make_all_comms(ndev, devlist);
    for (std::size_t r = 0; r < made.size(); ++r) comms[r] = handles::instance().add(std::move(made[r]));
  });
}

/// The ranks of the same color, in the order of (key, rank); NULL for NCCL_SPLIT_NOCOLOR. Every rank must call; blocks
/// until all have, or in a group until its end.
inline ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  using namespace rondo::nccl;
  return attempt_in_group([&] {
    require(newcomm, ncclInvalidArgument, "there is no place for the communicator: pass a pointer that is not NULL");
    require(color >= 0 || color == NCCL_SPLIT_NOCOLOR, ncclInvalidArgument,
            "a color is negative: pass 0 or more, or NCCL_SPLIT_NOCOLOR for no communicator");
    *newcomm = nullptr;
    check(config);
    auto const parent = handles::instance().find(comm);
    parent->require_open();
    call_group::mine().set_up([=] {
      if (auto part = parent->split(color, key)) *newcomm = handles::instance().add(std::move(part));
    });
  });
}

/// Nothing is under way when a call has returned, so that this only closes the communicator for further calls.
inline ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return rondo::nccl::attempt([&] { rondo::nccl::handles::instance().find(comm)->finalize(); });
}

/// Does not wait for the other ranks. A call of another thread that is under way goes on to its end.
inline ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return rondo::nccl::attempt([&] { (void)rondo::nccl::handles::instance().remove(comm); });
}

/// Destroys the communicator, and ends with ncclRemoteError what any rank has under way on it, or calls later.
inline ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return rondo::nccl::attempt([&] { rondo::nccl::handles::instance().remove(comm)->abort(); });
}

/// What has made the communicator unusable, if anything has: the death of a rank shows without a call, soon after it.
inline ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  using namespace rondo::nccl;
  return attempt([&] {
    require(asyncError, ncclInvalidArgument, "there is no place for the error: pass a pointer that is not NULL");
    auto const c = handles::instance().find(comm);
    auto const health = c->health();
    if (health.code != ncclSuccess) c->remember(health), fail(health);
    *asyncError = health.code;
  });
}

inline ncclResult_t ncclCommCount(ncclComm_t const comm, int* count) {
  return rondo::nccl::ask(comm, count, [](auto& c) { return c.size(); });
}
inline ncclResult_t ncclCommUserRank(ncclComm_t const comm, int* rank) {
  return rondo::nccl::ask(comm, rank, [](auto& c) { return c.rank(); });
}

/// The CUDA device of the thread that made the communicator, or what ncclCommInitAll was told; 0 without CUDA.
inline ncclResult_t ncclCommCuDevice(ncclComm_t const comm, int* device) {
  return rondo::nccl::ask(comm, device, [](auto& c) { return c.device(); });
}

// These are templates only so that a file compiles nothing for the collectives that it does not call: half a minute
// less. They are called as any function.

/// Every rank ends with the reduction of all contributions. In place if both buffers are one.
template <rondo::collective C = rondo::collective::all_reduce>
ncclResult_t ncclAllReduce(void const* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return rondo::nccl::submit<C>(comm, {.in = sendbuff, .out = recvbuff, .count = count, .type = type, .stream = stream},
                                op);
}

/// The root ends with the reduction; recvbuff counts there only.
template <rondo::collective C = rondo::collective::reduce>
ncclResult_t ncclReduce(void const* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return rondo::nccl::submit<C>(
      comm, {.in = sendbuff, .out = recvbuff, .count = count, .type = type, .peer = root, .stream = stream}, op);
}

/// Rank r ends with block r, of recvcount elements. In place if recvbuff is block r of sendbuff.
template <rondo::collective C = rondo::collective::reduce_scatter>
ncclResult_t ncclReduceScatter(void const* sendbuff, void* recvbuff, std::size_t recvcount, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return rondo::nccl::submit<C>(
      comm, {.in = sendbuff, .out = recvbuff, .count = recvcount, .type = type, .stream = stream}, op);
}

/// Every rank ends with the blocks of all, of sendcount elements each. In place if sendbuff is block r of recvbuff.
template <rondo::collective C = rondo::collective::all_gather>
ncclResult_t ncclAllGather(void const* sendbuff, void* recvbuff, std::size_t sendcount, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return rondo::nccl::submit<C>(comm,
                                {.in = sendbuff, .out = recvbuff, .count = sendcount, .type = type, .stream = stream});
}

/// Every rank ends with the values in the root's sendbuff, which counts there only.
template <rondo::collective C = rondo::collective::broadcast>
ncclResult_t ncclBroadcast(void const* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return rondo::nccl::submit<C>(
      comm, {.in = sendbuff, .out = recvbuff, .count = count, .type = type, .peer = root, .stream = stream});
}
template <rondo::collective C = rondo::collective::broadcast>
ncclResult_t ncclBcast(void* buff, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return ncclBroadcast<C>(buff, buff, count, type, root, comm, stream);
}

/// The n-th send to a rank meets its n-th receive from here, of the same count and type. In a group none waits for
/// another one; a rank may send to itself there.
template <rondo::collective C = rondo::collective::send_receive>
ncclResult_t ncclSend(void const* sendbuff, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return rondo::nccl::submit<C>(
      comm, {.in = sendbuff, .count = count, .type = type, .peer = peer, .sends = true, .stream = stream});
}
template <rondo::collective C = rondo::collective::send_receive>
ncclResult_t ncclRecv(void* recvbuff, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return rondo::nccl::submit<C>(comm, {.out = recvbuff, .count = count, .type = type, .peer = peer, .stream = stream});
}

/// Between these two, in one thread, calls are only written down; the end of the outermost group makes all of them at
/// once and returns when they are done. If one of them was refused, none is made. Groups may lie in groups.
inline ncclResult_t ncclGroupStart() {
  rondo::nccl::call_group::mine().begin();
  return ncclSuccess;
}
inline ncclResult_t ncclGroupEnd() {
  rondo::nccl::status outcome;
  auto const code = rondo::nccl::attempt([&] { outcome = rondo::nccl::call_group::mine().end(); });
  return code == ncclSuccess && outcome.code != ncclSuccess ? rondo::nccl::fail(std::move(outcome)) : code;
}

/// An operation for this communicator: the sum of contributions, each times the scalar of its rank. An immediate scalar
/// is read now, one on the device (or, without CUDA, in memory) by every call.
inline ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                             ncclScalarResidence_t residence, ncclComm_t comm) {
  using namespace rondo::nccl;
  return attempt([&] {
    require(op && scalar, ncclInvalidArgument, "there is no scalar, or no place for the operation: pass both pointers");
    (void)size_of(type);
    *op = handles::instance().find(comm)->make_premul_sum(type, scalar, residence == ncclScalarDevice);
  });
}
inline ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return rondo::nccl::attempt([&] { rondo::nccl::handles::instance().find(comm)->destroy_op(op); });
}

/// Memory of the device of this thread, or without CUDA whole pages of the host.
inline ncclResult_t ncclMemAlloc(void** ptr, std::size_t size) {
  using namespace rondo::nccl;
  return attempt([&] {
    require(ptr, ncclInvalidArgument, "there is no place for the address: pass a pointer that is not NULL");
    constexpr std::size_t page = 4096;
    *ptr = devices ? devices->allocate(size) : std::aligned_alloc(page, (size + page - 1) / page * page);
    require(*ptr || size == 0, ncclSystemError, "there is not enough memory: ask for less");
  });
}
inline ncclResult_t ncclMemFree(void* ptr) {
  using namespace rondo::nccl;
  return attempt([&] { devices ? devices->free(ptr) : std::free(ptr); });
}

/// Accepted, because nothing has to be registered: every buffer is as good as any other.
inline ncclResult_t ncclCommRegister(ncclComm_t const comm, void* buff, std::size_t, void** handle) {
  using namespace rondo::nccl;
  return attempt([&] {
    require(handle, ncclInvalidArgument, "there is no place for the handle: pass a pointer that is not NULL");
    (void)handles::instance().find(comm);
    *handle = buff;
  });
}
inline ncclResult_t ncclCommDeregister(ncclComm_t const comm, void*) {
  return rondo::nccl::attempt([&] { (void)rondo::nccl::handles::instance().find(comm); });
}

/// As in an NCCL whose devices do not offer windows: succeeds, and the window is NULL.
inline ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, std::size_t size, ncclWindow_t* window, int) {
  void* handle = nullptr;
  if (window) *window = nullptr;
  return ncclCommRegister(comm, buff, size, &handle);
}
inline ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t) {
  return ncclCommDeregister(comm, nullptr);
}

/// Not supported.
inline ncclResult_t ncclCommShrink(ncclComm_t, int*, int, ncclComm_t*, ncclConfig_t*, int) {
  return rondo::nccl::unsupported(
      "ncclCommShrink is not supported: let every rank call ncclCommSplit, or the ranks that "
      "are left make a communicator from a new id");
}
inline ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t*) {
  return rondo::nccl::unsupported(
      "ncclGroupSimulateEnd is not supported: `rondo simulate` estimates times; end the group with ncclGroupEnd");
}
