#include "options.hpp"
#include "train_in_stages.hpp"
#include "trainer.hpp"
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/shm.hpp>
#include <rondo/transports/tcp.hpp>

#include <cstdio>
#include <fstream>
#include <iomanip>

namespace {

using namespace transformer;

rondo::any_transport connect(std::string const& transport, std::shared_ptr<rondo::group> const& group) {
  if (transport == "tcp") return rondo::tcp::connect(group);
  return rondo::shm::connect(group);
}

void run(communicator& comm, options const& chosen) {
  bool const speaks = comm.rank() == 0;
  std::ofstream log;
  if (speaks && !chosen.loss_log.empty()) log.open(chosen.loss_log);
  if (!log) throw std::runtime_error("cannot write " + chosen.loss_log + ": name a file in a folder that exists");
  log << std::setprecision(9);
  auto const observe = [&](std::size_t step, progress const& p) {
    log << step << ' ' << p.loss << '\n';
    if (!speaks || step % chosen.every != 0) return;
    auto const ms = [](auto seconds) { return 1e3 * std::chrono::duration<double>(seconds).count(); };
    auto const& r = p.report;
    std::printf("step %zu   loss %.4f   norm %.3f   %.1f ms = compute %.1f + exposed %.1f + update %.1f   "
                "hidden %.1f   rank %d was last by %.1f ms\n",
                step, p.loss, r.norm, ms(p.wall), ms(r.compute), ms(r.exposed), ms(r.update), ms(r.hidden), r.slowest,
                ms(r.behind));
    std::fflush(stdout);
  };
  if (chosen.stages > 1)
    train_in_stages(comm, chosen, observe);
  else
    chosen.sharded ? train<sharded_adamw>(comm, chosen, observe) : train<whole_adamw>(comm, chosen, observe);
  if (speaks) std::printf("replicas identical\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a small GPT-2 on a text, data parallel: rondo launch -n 2 -- transformer");
  options const chosen(app);
  CLI11_PARSE(app, argc, argv);
  Eigen::setNbThreads(1);  // ranks share the cores, so each is one thread

  try {
    chosen.check();
    auto const group = rondo::join();
    communicator comm(group, connect(chosen.transport, group));
    run(comm, chosen);
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "transformer: %s\n", problem.what());
    return 1;
  }
}
