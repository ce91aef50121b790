#pragma once

#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/ucx/library.hpp>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// A UCX context with one worker, which one thread at a time uses, and the memory that it has registered.
///
/// What happens, happens within progress(): callbacks note it in their own data, and here whether anybody has to look.
class ucx_worker {
 public:
  using clock = group::clock;

  bool news = false;    ///< a stream may have moved
  bool chores = false;  ///< a stream has something to tell its peer

  /// Throws connect_error, which says what UCX lacks.
  explicit ucx_worker(int ranks) {
    release_error_signals();
    open_context(ranks);
    try {
      open_worker();
    } catch (...) {
      close();
      throw;
    }
  }
  ~ucx_worker() { close(); }
  ucx_worker(ucx_worker const&) = delete;
  ucx_worker& operator=(ucx_worker const&) = delete;

  ucp_worker_h handle() const noexcept { return worker_; }
  ucp_mem_h registration() const noexcept { return memory_; }

  /// Registers the memory of all messages. Call once.
  void adopt(std::span<std::byte> memory) {
    ucp_mem_map_params_t params{};
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address = memory.data();
    params.length = memory.size();
    params.memory_type = UCS_MEMORY_TYPE_HOST;
    demand(ucp_mem_map(context_, &params, &memory_), "cannot register " + std::to_string(memory.size()) +
                                                         " bytes of memory (raise the limit on locked memory, ulimit "
                                                         "-l, or lower slot_bytes or window of ucx_options)");
  }

  /// The address for other workers, opaque.
  std::string address() const {
    ucp_worker_attr_t attributes{};
    attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
    demand(ucp_worker_query(worker_, &attributes), "cannot tell its address");
    std::string const text(reinterpret_cast<char const*>(attributes.address), attributes.address_length);
    ucp_worker_release_address(worker_, attributes.address);
    return text;
  }

  /// Runs the callbacks of everything that has come, until nothing more comes.
  void progress() noexcept {
    for (int left = rounds; left > 0 && ucp_worker_progress(worker_) != 0; --left) {}
  }

  /// Makes events() readable when there is something to progress; false if there is already.
  bool arm() {
    auto const status = ucp_worker_arm(worker_);
    if (status == UCS_OK || status == UCS_ERR_BUSY) return status == UCS_OK;
    throw error("UCX cannot wait for events (" + ucx_text(status) + "): use tcp");
  }
  int events() const noexcept { return events_; }

  /// Progresses until all requests are done, or until `deadline`; true if they are. Takes what nbx calls return.
  bool finish(std::vector<ucs_status_ptr_t>& requests, clock::time_point deadline) noexcept {
    for (;;) {
      std::erase_if(requests, [](ucs_status_ptr_t request) {
        if (!UCS_PTR_IS_PTR(request)) return true;
        if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
        ucp_request_free(request);
        return true;
      });
      if (requests.empty() || clock::now() >= deadline) return requests.empty();
      progress();
    }
  }

 private:
  static constexpr int rounds = 10000;  // a transport that always claims to have moved must not keep us

  static void demand(ucs_status_t status, std::string const& otherwise) {
    if (status != UCS_OK) throw connect_error("UCX " + otherwise + ": " + ucx_text(status));
  }

  void open_context(int ranks) {
    ucp_config_t* config = nullptr;
    demand(ucp_config_read(nullptr, nullptr, &config), "does not understand the UCX_ variables; correct them");
    // A user who has set one of these has decided.
    for (auto const& [name, value] : {
             std::pair{"KEEPALIVE_INTERVAL", "1s"},  // how soon the death of an idle peer is noticed; 20 s by default
             std::pair{"RNDV_THRESH", "inf"},        // what a rank has sent must reach the peer without its help
         })
      if (!std::getenv((std::string("UCX_") + name).c_str())) ucp_config_modify(config, name, value);
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
    params.estimated_num_eps = static_cast<std::size_t>(ranks);
    auto const status = ucp_init(&params, config, &context_);
    ucp_config_release(config);
    demand(status, "finds no network that it can use; see ucx_info -d and the variables UCX_TLS, UCX_NET_DEVICES");
  }

  void open_worker() {
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    demand(ucp_worker_create(context_, &params, &worker_), "cannot create a worker");
    ucp_worker_attr_t granted{};
    granted.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE;
    demand(ucp_worker_query(worker_, &granted), "cannot describe its worker");
    if (granted.thread_mode == UCS_THREAD_MODE_SINGLE)
      throw connect_error("this UCX was built for programs with one thread: build it with --enable-mt or use tcp");
    demand(ucp_worker_get_efd(worker_, &events_), "has no event that one could wait for");
  }

  void close() noexcept {
    if (worker_) ucp_worker_destroy(worker_);
    if (memory_) ucp_mem_unmap(context_, memory_);
    ucp_cleanup(context_);
  }

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_mem_h memory_ = nullptr;
  int events_ = -1;
};

}  // namespace rondo::inline v0::detail
