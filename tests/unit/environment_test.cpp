#include <rondo/transports/environment.hpp>

#include <gtest/gtest.h>
#include <map>
#include <string>

namespace {

using rondo::environment;
using variables = std::map<std::string, std::string>;

environment detect(variables const& set) {
  return environment::detect([&](char const* name) -> char const* {
    auto const found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  });
}

void expect_refusal(variables const& set, std::string const& part) {
  try {
    auto const found = detect(set);
    ADD_FAILURE() << "rank " << found.rank << " of " << found.size << " was accepted; expected: " << part;
  } catch (rondo::invalid_argument const& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

variables with(variables base, variables const& more) {
  for (auto const& [name, value] : more) base[name] = value;
  return base;
}

variables const torchrun{{"RANK", "5"},
                         {"WORLD_SIZE", "8"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "4"},
                         {"MASTER_ADDR", "node7"},
                         {"MASTER_PORT", "29500"},
                         {"TORCHELASTIC_RUN_ID", "abc"},
                         {"TORCHELASTIC_RESTART_COUNT", "2"}};
variables const open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},       {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"OMPI_MCA_ess_base_jobid", "77"},   {"OMPI_MCA_orte_precondition_transports", "0123-4567"}};
variables const slurm{{"SLURM_PROCID", "3"},
                      {"SLURM_NTASKS", "6"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_JOB_ID", "991"},
                      {"SLURM_JOB_NODELIST", "n[07-9]"},
                      {"SLURM_STEP_ID", "0"}};

TEST(environment, nothing_set_is_a_world_of_one) {
  auto const e = detect({});
  EXPECT_EQ(e.rank, 0);
  EXPECT_EQ(e.size, 1);
  EXPECT_EQ(e.local_size, 1);
  EXPECT_EQ(e.launcher, "");
}

TEST(environment, an_empty_variable_is_unset) { EXPECT_EQ(detect({{"RANK", ""}, {"WORLD_SIZE", ""}}).size, 1); }

TEST(environment, torchrun_keeps_its_own_port) {
  auto const e = detect(torchrun);
  EXPECT_EQ(e.launcher, "torchrun");
  EXPECT_EQ(e.rank, 5);
  EXPECT_EQ(e.size, 8);
  EXPECT_EQ(e.local_rank, 1);
  EXPECT_EQ(e.local_size, 4);
  EXPECT_EQ(e.address, "node7");
  EXPECT_EQ(e.port, 29501);
  EXPECT_EQ(e.job, "abc.2.0");
  EXPECT_EQ(detect(with(torchrun, {{"MASTER_PORT", "65535"}})).port, 1);
  EXPECT_EQ(detect(with(torchrun, {{"RONDO_PORT", "4000"}})).port, 4000);
}

TEST(environment, by_hand_the_master_port_is_the_port) {
  auto const e = detect({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "7000"}});
  EXPECT_EQ(e.launcher, "RANK");
  EXPECT_EQ(e.port, 7000);
  EXPECT_EQ(e.local_size, 0);
  EXPECT_EQ(e.job, "");  // ranks of several hosts or terminals have no launcher in common
  EXPECT_EQ(detect({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}}).port, 29500);
}

TEST(environment, without_an_address_the_launcher_process_names_the_job) {
  auto const e = detect({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(e.address, "");
  EXPECT_EQ(e.port, 0);
  EXPECT_EQ(e.job.substr(0, 9), "launcher ");
  EXPECT_EQ(detect({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).job, e.job);
}

TEST(environment, port_0_means_found_by_name) {
  auto const e = detect({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "0"}});
  EXPECT_EQ(e.port, 0);
}

TEST(environment, open_mpi_gives_a_job_and_a_secret) {
  auto const e = detect(open_mpi);
  EXPECT_EQ(e.launcher, "Open MPI");
  EXPECT_EQ(e.rank, 1);
  EXPECT_EQ(e.size, 4);
  EXPECT_EQ(e.local_rank, 1);
  EXPECT_EQ(e.port, 0);
  EXPECT_EQ(e.job, "77.0.0");
  EXPECT_EQ(e.token, "0123-4567");
  EXPECT_EQ(detect(with(open_mpi, {{"RONDO_TOKEN", "mine"}})).token, "mine");
}

TEST(environment, mpi_on_several_hosts_needs_an_address) {
  auto const wide = with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  expect_refusal(wide, "only 2 of 4 ranks are on this host");
  auto const e = detect(with(wide, {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "5"}}));
  EXPECT_EQ(e.address, "10.0.0.1");
  EXPECT_EQ(e.port, 5);
}

TEST(environment, pmi) {
  auto const e = detect({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "2"}, {"MPI_LOCALNRANKS", "3"}});
  EXPECT_EQ(e.launcher, "PMI");
  EXPECT_EQ(e.rank, 2);
  EXPECT_EQ(e.local_size, 3);
}

TEST(environment, slurm_meets_at_the_first_node_on_a_port_of_the_job) {
  auto const e = detect(slurm);
  EXPECT_EQ(e.launcher, "Slurm");
  EXPECT_EQ(e.rank, 3);
  EXPECT_EQ(e.size, 6);
  EXPECT_EQ(e.local_rank, 1);
  EXPECT_EQ(e.address, "n07");
  EXPECT_GE(e.port, 20000);
  EXPECT_LT(e.port, 30000);
  EXPECT_EQ(e.ports, 8);
  EXPECT_EQ(e.job, "991.0.0");
  EXPECT_EQ(detect(with(slurm, {{"SLURM_PROCID", "0"}})).port, e.port);
  EXPECT_NE(detect(with(slurm, {{"SLURM_STEP_ID", "1"}})).port, e.port);
  EXPECT_EQ(detect(with(slurm, {{"SLURM_STEP_NUM_TASKS", "4"}})).size, 4);
  EXPECT_EQ(detect(with(slurm, {{"RONDO_ADDR", "me"}, {"RONDO_PORT", "9"}})).address, "me");
}

TEST(environment, a_slurm_batch_script_is_not_a_rank) {
  auto script = slurm;
  script.erase("SLURM_STEP_ID");
  EXPECT_EQ(detect(script).size, 1);
}

TEST(environment, the_order_of_the_dialects) {
  auto all = with(with(with(slurm, open_mpi), torchrun), {{"RONDO_RANK", "0"}, {"RONDO_WORLD_SIZE", "9"}});
  EXPECT_EQ(detect(all).size, 9);
  all.erase("RONDO_RANK");
  all.erase("RONDO_WORLD_SIZE");
  EXPECT_EQ(detect(all).launcher, "torchrun");
  EXPECT_EQ(detect(with(slurm, open_mpi)).launcher, "Open MPI");
}

TEST(environment, first_host_of_a_node_list) {
  using rondo::detail::first_host;
  EXPECT_EQ(first_host("alone"), "alone");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("node[3,5-7],x"), "node3");
  EXPECT_EQ(first_host("node[03-12]"), "node03");
  EXPECT_EQ(first_host("r[1-2]n4,z"), "r1n4");
  EXPECT_EQ(first_host("login,node[1-3]"), "login");
  EXPECT_EQ(first_host("broken[1"), "broken1");
  EXPECT_EQ(first_host(""), "");
}

TEST(environment, garbage_names_the_variable) {
  for (auto const* bad : {"abc", "-1", "3x", " 3", "0x3", "99999999999", "1.0"})
    expect_refusal(with(torchrun, {{"RANK", bad}}), "RANK=" + std::string(bad) + " is not a number");
  expect_refusal(with(torchrun, {{"WORLD_SIZE", "0"}}), "WORLD_SIZE=0 is not a number from 1");
  expect_refusal(with(torchrun, {{"MASTER_PORT", "65536"}}), "MASTER_PORT=65536 is not a number from 0 to 65535");
  expect_refusal(with(torchrun, {{"RONDO_PORT", "http"}}), "RONDO_PORT=http");
  expect_refusal(with(torchrun, {{"RONDO_LISTEN_FD", "-1"}}), "RONDO_LISTEN_FD=-1");
}

TEST(environment, contradictions_name_the_variables) {
  expect_refusal(with(torchrun, {{"RANK", "8"}}), "RANK=8 but WORLD_SIZE=8: ranks go from 0 to 7");
  expect_refusal(with(torchrun, {{"LOCAL_RANK", "4"}}), "LOCAL_RANK=4 but LOCAL_WORLD_SIZE=4");
  expect_refusal(with(torchrun, {{"LOCAL_WORLD_SIZE", "9"}}), "LOCAL_WORLD_SIZE=9 is not a number from 1 to 8");
  expect_refusal({{"RANK", "1"}}, "RANK is set but WORLD_SIZE is not");
  expect_refusal({{"WORLD_SIZE", "2"}}, "WORLD_SIZE is set but the rank is not");
  expect_refusal({{"RONDO_RANK", "1"}}, "RONDO_RANK is set but RONDO_WORLD_SIZE is not");
  EXPECT_EQ(detect({{"WORLD_SIZE", "1"}}).size, 1);
}

}  // namespace
