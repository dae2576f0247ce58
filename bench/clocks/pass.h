// A backward pass whose main kernel has clocks, on a device of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attention/launch.h"
#include "bench/clocks/clocks.h"

namespace flashback::clocks {

// A warp passes a place.
struct Stamp {
  double cycle;         // since the first note of the CTA
  std::uint32_t place;  // of places()
};

class ClockedPass {
 public:
  explicit ClockedPass(std::unique_ptr<Workbench> workbench) : workbench_(std::move(workbench)) {}
  ~ClockedPass();
  ClockedPass(const ClockedPass&) = delete;
  ClockedPass& operator=(const ClockedPass&) = delete;

  // Once. Allocates; every input is 0.1, which no time depends on. A GPU's driver assembles the text. `clock`
  // is the special register that is noted, for devices without a clock another one.
  Status prepare(const Problem& problem, Where where, std::string_view clock = "%clock");
  // Runs the pass; what warp w of CTA 0 of the main kernel noted stands in (*stamps)[w].
  Status run(std::vector<std::vector<Stamp>>* stamps);

  const Problem& problem() const { return problem_; }
  const Workbench& workbench() const { return *workbench_; }
  const std::string& entry() const { return entry_; }
  const std::vector<Place>& places() const { return kernel_.places; }

 private:
  class Clocked;
  Status add(std::size_t bytes, std::uint32_t word, Address* address);

  ClockedKernel kernel_;
  KernelImage image_;  // outlives the device, which knows it by its address
  std::unique_ptr<Workbench> workbench_;
  Problem problem_;
  Plan plan_;
  std::string entry_;
  int warps_ = 0;
  Notes notes_ = {};
  std::vector<Address> memory_;
};

// Cycles of a tile of 128 x 128 that CTA 0 of a persistent kernel took in a launch of `problem` on the GPU:
// from the first to the last instruction of a compute warp, by the mean number of tiles of a CTA. The median
// of five.
Status cycles_per_tile(int cuda_ordinal, const Problem& problem, double* cycles);

}  // namespace flashback::clocks
