// For tests that write their own PTX: one entry `test` that takes one struct, on a workbench of the emulator.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/workbench.h"

namespace flashback::emulator::testing {

// What of the schedule tests vary.
inline MachineOptions with(Completion completion, std::uint64_t seed = 0, int threads = 1,
                           bool shuffled = false) {
  MachineOptions options;
  options.threads = threads;
  options.schedule.completion = completion;
  options.schedule.seed = seed;
  options.schedule.shuffle_ctas = shuffled;
  return options;
}

class PtxBench {
 public:
  explicit PtxBench(const MachineOptions& options = {}) : workbench_(make_workbench(options)) {}

  Workbench& workbench() { return *workbench_; }

  template <class T>
  Address upload(const std::vector<T>& values) {
    Address address = 0;
    EXPECT_TRUE(workbench_->allocate(values.size() * sizeof(T), &address).ok());
    EXPECT_TRUE(workbench_->upload(address, std::as_bytes(std::span(values)), nullptr).ok());
    return address;
  }
  template <class T>
  std::vector<T> download(Address address, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(workbench_->download(std::as_writable_bytes(std::span(values)), address, nullptr).ok());
    return values;
  }

  // Runs `ptx`, a whole module, with `parameters` as its entry's only parameter.
  template <class Parameters>
  Status run(const std::string& ptx, const Parameters& parameters, Dim3 block = {32, 1, 1},
             Dim3 grid = {1, 1, 1}, std::uint32_t shared_bytes = 0, Dim3 cluster = {1, 1, 1}) {
    const KernelImage image{"test", workbench_->arch(), ptx, {}};
    Launch launch;
    launch.image = &image;
    launch.entry = "test";
    launch.grid = grid;
    launch.cluster = cluster;
    launch.block = block;
    launch.shared_bytes = shared_bytes;
    launch.parameters = std::as_bytes(std::span(&parameters, 1));
    return workbench_->launch(launch, nullptr);
  }

 private:
  std::unique_ptr<Workbench> workbench_;
};

// A module of one entry. `parameter_bytes` are the parameter `p`, `directives` stand before the body.
inline std::string module_of(std::size_t parameter_bytes, const std::string& body,
                             const std::string& directives = "") {
  return fmt::format(
      ".version 8.8\n.target sm_100a\n.address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n"
      ".visible .entry test(.param .align 64 .b8 p[{}])\n{}\n{{\n{}\nret;\n}}\n",
      parameter_bytes, directives, body);
}

}  // namespace flashback::emulator::testing
