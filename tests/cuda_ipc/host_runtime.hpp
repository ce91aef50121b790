#pragma once

#include <rondo/detail/shared_file.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/transports/cuda_ipc/runtime.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

/// Devices without a GPU: their memory is anonymous files, and what CUDA demands of those who share it is demanded
/// here.
///
/// An address on a device is no address of the processor: whoever dereferences one ends with a signal.
namespace cuda_ipc_test {

using namespace rondo;

/// What the machine is like, the same for all its processes. Devices have physical numbers here.
struct platform {
  int devices = 4;
  bool has_files = true;
  bool exports_files = true;                                              ///< it keeps what has_files promises
  bool opens_handles = true;                                              ///< else opening one is an error
  std::function<bool(int, int)> reaches = [](int, int) { return true; };  ///< what it claims
  std::function<bool(int, int)> loses = [](int, int) { return false; };   ///< stores of the one to the other
};

/// Calls that run one after the other, on a thread of their own.
class stream_queue {
 public:
  ~stream_queue() {
    std::unique_lock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
    lock.unlock();
    if (thread_.joinable()) thread_.join();
  }
  void enqueue(std::function<void()> call) {
    std::scoped_lock const lock(mutex_);
    calls_.push_back(std::move(call));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return calls_.empty(); });
  }

 private:
  void run() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [this] { return ends_ || !calls_.empty(); });
      if (calls_.empty()) return;
      lock.unlock();
      calls_.front()();  // only this thread takes calls out, and a deque keeps its front in place
      lock.lock();
      calls_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;
  bool ends_ = false;
  std::thread thread_;
};

/// A process as the platform sees it: a real one, or threads that play one. `visible` are the devices that it may use,
/// in the order in which it numbers them.
class host_process {
 public:
  host_process(platform what, std::vector<int> visible)
      : platform_(std::move(what)), visible_(std::move(visible)),
        name_(detail::text_of({::getpid(), "-", next_process()++})) {}
  host_process(host_process const&) = delete;
  host_process& operator=(host_process const&) = delete;
  ~host_process() {
    default_stream.wait();
    for (auto& m : memory_) ::munmap(m.base, m.bytes + ledger_bytes);
  }

  std::string const& name() const { return name_; }
  platform const& machine() const { return platform_; }
  int physical(int device) const {
    require(device >= 0 && device < static_cast<int>(visible_.size()), "there is no such device");
    return visible_[static_cast<std::size_t>(device)];
  }
  std::vector<int> const& visible() const { return visible_; }

  /// What CUDA would call undefined behaviour, in words.
  std::vector<std::string> faults() const {
    std::scoped_lock const lock(mutex_);
    return faults_;
  }
  std::size_t allocations() const {
    std::scoped_lock const lock(mutex_);
    return memory_.size();
  }
  int opened() const { return opened_; }  ///< handles, so far

  void enable(int device, int peer) {
    std::scoped_lock const lock(mutex_);
    require(platform_.reaches(device, peer), "peer access is not supported between these devices");
    enabled_.push_back({device, peer});
  }

  std::byte* allocate(int device, std::size_t bytes) { return make(device, bytes, origin::plain).base_address(); }

  device_file allocate_file(int device, std::size_t bytes) {
    require(platform_.exports_files, "operation not supported");
    auto& m = make(device, (bytes + granularity - 1) / granularity * granularity, origin::file);
    return {m.base_address(), m.bytes, detail::file_descriptor(::dup(m.file.get()))};
  }

  void free(std::byte* p, bool file) {
    std::scoped_lock const lock(mutex_);
    auto const m = find(p);
    if (m == memory_.end() || m->base_address() != p || m->from == origin::handle || (m->from == origin::file) != file)
      return complain("freed what is no allocation");
    auto& book = m->book();
    if (m->from == origin::plain && book.open != 0) complain("freed what others have open");
    if (m->from == origin::plain) book.freed = true;
    remove(m);
  }

  device_allocation allocation_of(std::byte const* p) const {
    std::scoped_lock const lock(mutex_);
    auto const m = find(p);
    require(m != memory_.end(), "invalid argument: no device memory");
    return {m->base_address(), m->bytes, m->id};
  }

  device_handle export_handle(std::byte* base) const {
    std::scoped_lock const lock(mutex_);
    auto const m = find(base);
    require(m != memory_.end() && m->from == origin::plain, "invalid argument: only memory of allocate() has a handle");
    require(m->base_address() == base, "invalid argument: a handle names a whole allocation");
    passport text{};
    text.pid = ::getpid(), text.file = m->file.get(), text.id = m->id;
    text.bytes = m->bytes, text.device = m->device;
    std::copy_n(name_.data(), std::min(name_.size(), text.process.size()), text.process.begin());
    device_handle handle{};
    std::memcpy(handle.data(), &text, sizeof text);
    return handle;
  }

  std::byte* open_handle(int device, device_handle const& handle) {
    std::scoped_lock const lock(mutex_);
    passport text;
    std::memcpy(&text, handle.data(), sizeof text);
    require(platform_.opens_handles, "peer access is not supported (101)");
    require(name_ != text.process.data(), "invalid device context: a handle is opened by another process");
    require(can_address(device, text.device), "peer access was not enabled");
    ++opened_;
    for (auto& m : memory_)
      if (m.from == origin::handle && m.id == text.id && m.process == text.process.data())
        return ++m.count, m.base_address();
    auto const path = detail::text_of({"/proc/", text.pid, "/fd/", text.file});
    detail::file_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    require(bool(file), "invalid resource handle");
    auto& m = map(std::move(file), text.device, text.bytes, text.id, origin::handle);
    m.process = text.process.data();
    require(!m.book().freed, "invalid resource handle: it was freed");
    ++m.book().open;
    return m.base_address();
  }

  void close_handle(std::byte* p) {
    std::scoped_lock const lock(mutex_);
    auto const m = find(p);
    if (m == memory_.end() || m->from != origin::handle) return complain("closed what is no open handle");
    if (--m->count > 0) return;
    --m->book().open;
    remove(m);
  }

  std::byte* map_file(int device, int file, std::size_t bytes) {
    std::scoped_lock const lock(mutex_);
    auto& m = map(detail::file_descriptor(::dup(file)), device, bytes, next_id(), origin::file);
    m.device = m.book().device;
    require(can_address(device, m.device), "peer access was not enabled");
    return m.base_address();
  }

  /// Where the processor finds memory that may be on a device. `device` is the one that copies; nullptr: the store is
  /// lost on the way.
  std::byte* real(std::byte const* p, std::size_t bytes, int device, bool stores) const {
    if (!is_address(p)) return const_cast<std::byte*>(p);
    std::scoped_lock const lock(mutex_);
    auto const m = find(p);
    require(m != memory_.end() && p + bytes <= m->base_address() + m->bytes, "an illegal memory access");
    require(can_address(device, m->device), "an illegal memory access: no peer access");
    if (m->from == origin::handle && m->book().freed) faults_.push_back("used memory that its owner has freed");
    if (stores && platform_.loses(device, m->device)) return nullptr;
    return m->base + ledger_bytes + (p - m->base_address());
  }

  static bool is_address(std::byte const* p) { return (reinterpret_cast<std::uintptr_t>(p) & mark) != 0; }
  static void require(bool holds, char const* otherwise) {
    if (!holds) throw device_error(otherwise);
  }

  stream_queue default_stream;

 private:
  static constexpr std::uintptr_t mark = std::uintptr_t{1} << 60;  // no processor takes such an address
  static constexpr std::size_t ledger_bytes = 4096, granularity = std::size_t{2} << 20;

  enum class origin { plain, file, handle };

  /// At the beginning of each file, where all processes see it.
  struct ledger {
    std::atomic<int> open{0};
    std::atomic<bool> freed{false};
    int device = 0;
  };

  struct passport {
    pid_t pid;
    int file;
    std::uint64_t id, bytes;
    int device;
    std::array<char, 28> process;
  };
  static_assert(sizeof(passport) <= sizeof(device_handle));

  struct piece {
    std::byte* base;  // of the mapping, as the processor addresses it
    std::size_t bytes;
    int device;
    std::uint64_t id;
    origin from;
    detail::file_descriptor file;
    int count = 1;
    std::string process{};

    ledger& book() const { return *reinterpret_cast<ledger*>(base); }
    std::byte* base_address() const {
      return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base + ledger_bytes) | mark);
    }
  };

  static std::atomic<int>& next_process() {
    static std::atomic<int> next{0};
    return next;
  }
  std::uint64_t next_id() { return ++last_id_; }

  piece& make(int device, std::size_t bytes, origin from) {
    std::scoped_lock const lock(mutex_);
    auto& m = map(detail::make_shared_file(ledger_bytes + bytes), device, bytes, next_id(), from);
    m.book().device = device;
    std::memset(m.base + ledger_bytes, 0xa5, bytes);  // fresh memory holds anything
    return m;
  }

  piece& map(detail::file_descriptor file, int device, std::size_t bytes, std::uint64_t id, origin from) {
    void* const p = ::mmap(nullptr, ledger_bytes + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    require(p != MAP_FAILED, "out of memory");
    return memory_.emplace_back(piece{static_cast<std::byte*>(p), bytes, device, id, from, std::move(file)});
  }

  std::list<piece>::const_iterator find(std::byte const* p) const {
    return std::find_if(memory_.begin(), memory_.end(),
                        [p](piece const& m) { return p >= m.base_address() && p < m.base_address() + m.bytes; });
  }
  std::list<piece>::iterator find(std::byte const* p) {
    auto const found = std::as_const(*this).find(p);
    return memory_.erase(found, found);  // the same place, to be changed
  }
  void remove(std::list<piece>::iterator m) {
    ::munmap(m->base, m->bytes + ledger_bytes);
    memory_.erase(m);
  }

  bool can_address(int device, int other) const {
    return device == other || std::find(enabled_.begin(), enabled_.end(), std::pair(device, other)) != enabled_.end();
  }
  void complain(char const* what) { faults_.push_back(what); }

  platform platform_;
  std::vector<int> visible_;
  std::string name_;
  mutable std::mutex mutex_;
  std::list<piece> memory_;
  std::vector<std::pair<int, int>> enabled_;
  mutable std::vector<std::string> faults_;
  std::uint64_t last_id_ = 0;
  std::atomic<int> opened_{0};
};

/// The calls that cuda_ipc makes, in a process. `device` is the current one of its thread.
class host_runtime {
 public:
  using stream = stream_queue*;  // null: the default one

  host_runtime() = default;
  explicit host_runtime(std::shared_ptr<host_process> process, int device = 0)
      : process_(std::move(process)), device_(device) {}

  /// What the test looks at.
  host_process& inside() const { return *process_; }
  std::shared_ptr<host_process> const& shared() const { return process_; }

  std::string process() const { return process_->name(); }
  int current() const {
    host_process::require(process_ != nullptr, "no CUDA-capable device is detected");
    return device_;
  }
  device_uuid uuid(int device) const {
    device_uuid name{};
    name[3] = static_cast<std::byte>(process_->physical(device) + 1);
    return name;
  }
  int find(device_uuid const& name) const {
    auto const& all = process_->visible();
    auto const at = std::find(all.begin(), all.end(), static_cast<int>(name[3]) - 1);
    return at == all.end() ? -1 : static_cast<int>(at - all.begin());
  }
  bool reaches(int device, int peer) const { return process_->machine().reaches(physical(device), physical(peer)); }
  void enable(int device, int peer) const { process_->enable(physical(device), physical(peer)); }
  bool on_device(std::byte const* p) const { return host_process::is_address(p); }

  std::byte* allocate(int device, std::size_t bytes) const { return process_->allocate(physical(device), bytes); }
  void deallocate(int, std::byte* p) const noexcept { process_->free(p, false); }
  device_allocation allocation_of(std::byte const* p) const { return process_->allocation_of(p); }
  device_handle export_handle(std::byte* base) const { return process_->export_handle(base); }
  std::byte* open_handle(int device, device_handle const& h) const {
    return process_->open_handle(physical(device), h);
  }
  void close_handle(int, std::byte* p) const noexcept { process_->close_handle(p); }
  bool has_files(int) const { return process_->machine().has_files; }
  device_file allocate_file(int device, std::size_t bytes) const {
    return process_->allocate_file(physical(device), bytes);
  }
  std::byte* map_file(int device, int file, std::size_t bytes) const {
    return process_->map_file(physical(device), file, bytes);
  }
  void unmap(std::byte* p, std::size_t) const noexcept { process_->free(p, true); }
  std::byte* allocate_pinned(std::size_t bytes) const { return new std::byte[bytes]; }
  void free_pinned(std::byte* p) const noexcept { delete[] p; }

  void copy(std::byte* to, std::byte const* from, std::size_t bytes, stream s) const {
    auto* const there = process_->real(to, bytes, physical(device_), true);
    auto const* const here = process_->real(from, bytes, physical(device_), false);
    queue(s).enqueue([=] {
      if (there && bytes != 0) std::memcpy(there, here, bytes);
    });
  }
  void zero(std::byte* p, std::size_t bytes, stream s) const {
    auto* const there = process_->real(p, bytes, physical(device_), true);
    queue(s).enqueue([=] { std::memset(there, 0, bytes); });
  }
  void wait(stream s) const { queue(s).wait(); }

 private:
  int physical(int device) const { return process_->physical(device); }
  stream_queue& queue(stream s) const { return s ? *s : process_->default_stream; }

  std::shared_ptr<host_process> process_;
  int device_ = 0;
};

static_assert(device_runtime<host_runtime>);

}  // namespace cuda_ipc_test
