#pragma once

#include <rondo/error.hpp>

#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <string>
#include <string_view>
#include <ucp/api/ucp.h>
#include <ucs/debug/debug.h>

namespace rondo::inline v0::detail {

/// What UCX says about a status.
inline std::string ucx_text(ucs_status_t status) { return ucs_status_string(status); }

/// Throws connect_error unless UCX major.minor can run what was compiled with these headers: a library that is older
/// than the headers reads structures wrongly.
inline void demand_ucx(unsigned major, unsigned minor) {
  constexpr unsigned needed = UCP_API_VERSION;
  if (UCP_VERSION(major, minor) >= needed) return;
  throw connect_error("this program was compiled for UCX " + std::to_string(UCP_API_MAJOR) + "." +
                      std::to_string(UCP_API_MINOR) + ", but UCX " + std::to_string(major) + "." +
                      std::to_string(minor) + " is loaded: load the newer one, or compile with the older headers");
}

/// The release of UCX that is loaded, like 1.13.1.
inline std::string ucx_release() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  demand_ucx(major, minor);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

/// Gives the signals of crashes back to the program: up to 1.19 UCX takes them over as soon as it is loaded. A user who
/// has set UCX_ERROR_SIGNALS has decided.
inline void release_error_signals() noexcept {
  if (std::getenv("UCX_ERROR_SIGNALS")) return;
  static std::mutex one_at_a_time;
  std::scoped_lock const lock(one_at_a_time);
  for (int const number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
    struct sigaction now {};
    Dl_info owner{};
    if (::sigaction(number, nullptr, &now) != 0 || !::dladdr(reinterpret_cast<void*>(now.sa_sigaction), &owner))
      continue;
    if (owner.dli_fname && std::string_view(owner.dli_fname).find("libucs") != std::string_view::npos)
      ucs_debug_disable_signal(number);
  }
}

}  // namespace rondo::inline v0::detail
