#pragma once

#include <rondo/adapters/nccl/types.h>
#include <rondo/error.hpp>

#include <exception>
#include <new>
#include <string>

/// How errors of rondo become what NCCL's functions return.
namespace rondo::inline v0::nccl {

/// A call that the adapter itself refuses.
class refusal : public error {
 public:
  refusal(ncclResult_t code, std::string const& what) : error(what), code_(code) {}

  ncclResult_t code() const noexcept { return code_; }

 private:
  ncclResult_t code_;
};

inline void require(bool holds, ncclResult_t code, char const* otherwise) {
  if (!holds) [[unlikely]]
    throw refusal(code, otherwise);
}

/// What went wrong: ncclSuccess and no sentence if nothing did.
struct status {
  ncclResult_t code = ncclSuccess;
  std::string sentence{};
};

/// The status of the exception that is being handled.
inline status status_of_exception() noexcept try {
  try {
    throw;
  } catch (refusal const& e) { return {e.code(), e.what()}; } catch (invalid_argument const& e) {
    return {ncclInvalidArgument, e.what()};
  } catch (collective_mismatch const& e) { return {ncclInvalidUsage, e.what()}; } catch (deadline_exceeded const& e) {
    return {ncclTimeout, e.what()};
  } catch (peer_lost const& e) { return {ncclRemoteError, e.what()}; } catch (connect_error const& e) {
    return {ncclSystemError, e.what()};
  } catch (error const& e) {
    return {e.rank() == nobody ? ncclSystemError : ncclRemoteError, e.what()};
  } catch (std::bad_alloc const&) {
    return {ncclSystemError, "rondo: there is not enough memory for this call"};
  } catch (std::exception const& e) { return {ncclInternalError, std::string("rondo: ") + e.what()}; }
} catch (...) { return {ncclSystemError, {}}; }  // no memory for the sentence

/// The last error of this thread, for ncclGetLastError.
inline status& last_status() noexcept {
  static thread_local status last;
  return last;
}

inline ncclResult_t fail(status why) noexcept {
  last_status() = std::move(why);
  return last_status().code;
}

/// Does f() and says how it went. No exception leaves.
template <class F>
ncclResult_t attempt(F&& f) noexcept {
  try {
    f();
    return ncclSuccess;
  } catch (...) { return fail(status_of_exception()); }
}

}  // namespace rondo::inline v0::nccl
