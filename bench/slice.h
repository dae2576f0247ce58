// What a pass writes of one group of heads judged against double precision: what the processor can do of a
// cell that it cannot do whole.
#pragma once

#include "attention/reference/reference.h"
#include "attention/tolerance.h"
#include "bench/outputs.h"

namespace flashback::bench {

using SliceVerdicts = OfOutputs<Verdict>;

// The last sequence's last key head and the query heads that share it.
class Slice {
 public:
  // Whether the references of the slice take seconds, and not minutes.
  static bool fits(const Shape& shape);

  // Computes the references from the inputs of the pass. Where out and lse are inputs they become the exact
  // ones. `threads` 0: one for each core.
  Slice(Workbench& workbench, const Pass& pass, int threads);

  // Of what the pass has written.
  SliceVerdicts judge(const Pass& pass);

 private:
  std::vector<std::uint16_t> download(const Tensor& tensor, std::int64_t rows, std::int64_t heads,
                                      std::int64_t taken);
  void write_out(const Pass& pass, const std::vector<float>& out);
  void write_lse(const Pass& pass);
  Address lse_of(const Pass& pass, std::int64_t head) const;
  Verdict judge_lse(const Pass& pass);

  Workbench& workbench_;
  const Stream stream_;
  const Cell cell_;
  const std::int64_t group_;
  reference::Answer<double> exact_;
  reference::Answer<float> sixteen_bit_;
  double unit_ = 1;       // of what the outputs are linear in
  double lse_limit_ = 0;  // of the forward pass
};

}  // namespace flashback::bench
