// What a device sees of a run: everything a kernel should write is NaN before the first launch, and so is a
// margin around every tensor; a kernel that writes to a margin is caught.
#include "program/device_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "kernels/common/parameters.h"
#include "program/failure.h"

namespace flashback::program {
namespace {

// Host memory that remembers its allocations, and launches that a test makes up.
class HostWorkbench : public Workbench {
 public:
  std::function<void(const Launch&)> on_launch = [](const Launch&) {};
  std::map<Address, std::vector<std::byte>> allocations;

  Arch arch() const override { return Arch::kSm100; }
  int multiprocessors() const override { return 1; }
  Status encode(const TensorMapRequest&, void*) override { return {}; }
  Status launch(const Launch& launch, Stream) override { return on_launch(launch), Status(); }
  Status fill(Address to, std::uint32_t value, std::size_t words, Stream) override {
    std::fill_n(reinterpret_cast<std::uint32_t*>(to), words, value);
    return {};
  }
  Status allocate(std::size_t bytes, Address* address) override {
    std::vector<std::byte> memory(bytes + 256);  // device memory is 256-byte aligned
    *address = (reinterpret_cast<Address>(memory.data()) + 255) / 256 * 256;
    allocations.emplace(*address, std::move(memory));
    return {};
  }
  void release(Address address) override { allocations.erase(address); }
  Status upload(Address to, std::span<const std::byte> from, Stream) override {
    std::memcpy(reinterpret_cast<void*>(to), from.data(), from.size());
    return {};
  }
  Status download(std::span<std::byte> to, Address from, Stream) override {
    std::memcpy(to.data(), reinterpret_cast<const void*>(from), to.size());
    return {};
  }
  Status wait(Stream) override { return {}; }
  Status mark(int, Stream) override { return {}; }
  Status elapsed(double* milliseconds) override { return *milliseconds = 250, Status(); }
};

class DeviceRun : public ::testing::Test {
 protected:
  DeviceRun() {
    problem_.shape = {.seqlen_q = 3, .seqlen_k = 2};
    inputs_.q = inputs_.out = inputs_.dout = std::vector<std::uint16_t>(3 * 64, 1);
    inputs_.k = inputs_.v = std::vector<std::uint16_t>(2 * 64, 1);
    inputs_.lse.assign(3, 0);
  }

  // The parameters of the launch, when they are of this kind.
  template <class Parameters>
  static const Parameters* parameters(const Launch& launch) {
    return launch.parameters.size() == sizeof(Parameters)
               ? reinterpret_cast<const Parameters*>(launch.parameters.data())
               : nullptr;
  }
  static bool all_nan(const void* from, std::size_t bytes) {
    const auto* at = static_cast<const std::byte*>(from);
    return std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{0xff}; });
  }

  HostWorkbench workbench_;
  Problem problem_;
  DeviceInputs inputs_;
};

TEST_F(DeviceRun, OutputsWorkspaceAndMarginsAreNaN) {
  int launches = 0;
  workbench_.on_launch = [&](const Launch& launch) {
    ++launches;
    if (const auto* p = parameters<common::PreprocessParameters>(launch)) {
      EXPECT_TRUE(all_nan(p->lse_log2, 128 * 4));
      EXPECT_TRUE(all_nan(p->delta, 128 * 4));
      EXPECT_TRUE(all_nan(p->dq_accum, 128 * 64 * 4));
      EXPECT_TRUE(all_nan(static_cast<const std::byte*>(p->out.data) - 64, 64));
      EXPECT_TRUE(all_nan(static_cast<const std::byte*>(p->out.data) + 3 * 64 * 2, 64));
    }
    if (const auto* p = parameters<common::PostprocessParameters>(launch)) {
      EXPECT_TRUE(all_nan(p->gradient.data, 3 * 64 * 2));
      std::memset(p->gradient.data, 1, 3 * 64 * 2);
    }
  };
  const DeviceGradients gradients = run_on(workbench_, false, problem_, inputs_);
  EXPECT_EQ(launches, 3);
  EXPECT_EQ(gradients.entries.size(), 3u);
  EXPECT_EQ(gradients.dq, std::vector<std::uint16_t>(3 * 64, 0x0101));
  EXPECT_EQ(gradients.dk, std::vector<std::uint16_t>(2 * 64, 0xffff));  // nobody wrote it
  EXPECT_EQ(gradients.seconds, 0.25);
  EXPECT_TRUE(workbench_.allocations.empty());
}

TEST_F(DeviceRun, WritesOutsideAreCaught) {
  for (const std::ptrdiff_t at : {std::ptrdiff_t{-1}, std::ptrdiff_t{3 * 64 * 2}}) {
    workbench_.on_launch = [&](const Launch& launch) {
      if (const auto* p = parameters<common::PostprocessParameters>(launch)) {
        static_cast<std::byte*>(p->gradient.data)[at] = std::byte{0};
      }
    };
    try {
      run_on(workbench_, false, problem_, inputs_);
      ADD_FAILURE() << "a write at byte " << at << " went unnoticed";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), kInternal);
      EXPECT_EQ(failure.what(), std::string("a kernel wrote outside of dq: byte ") +
                                    (at < 0 ? "65535" : "0") + " of the margin " +
                                    (at < 0 ? "before" : "after") + " it is no longer NaN");
    }
    EXPECT_TRUE(workbench_.allocations.empty());
  }
}

TEST_F(DeviceRun, DevicesThatCheckBoundsGetNoMargins) {
  workbench_.on_launch = [&](const Launch& launch) {
    if (const auto* p = parameters<common::PostprocessParameters>(launch)) {
      const auto found = workbench_.allocations.find(reinterpret_cast<Address>(p->gradient.data));
      ASSERT_NE(found, workbench_.allocations.end());
      EXPECT_EQ(found->second.size(), 3u * 64 * 2 + 256);
    }
  };
  run_on(workbench_, true, problem_, inputs_);
}

}  // namespace
}  // namespace flashback::program
