// The question: one backward pass, as the host speaks of it. Shapes first, then where the tensors are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "device/device.h"
#include "flashback/flashback.h"

namespace flashback {

enum class Direction { kForward, kBackward };
enum class Dtype { kBf16, kF16 };
enum class Mask { kDense, kCausal };
enum class TensorMemory { kSplit, kAliased };
enum class Signal { kWarp, kCta };

// The words of the command line, of JSON and of kernel names.
std::string_view name(Arch arch);            // sm90 | sm100
std::string_view name(Direction direction);  // forward | backward
std::string_view name(Dtype dtype);          // bf16 | fp16
std::string_view name(Mask mask);            // dense | causal
std::string_view name(TensorMemory memory);  // split | aliased
std::string_view name(Signal signal);        // warp | cta

struct Shape {
  std::int64_t batch = 1;
  std::int64_t heads = 1, kv_heads = 1;
  std::int64_t seqlen_q = 1, seqlen_k = 1;
  std::int64_t head_dim = 64;
};

// A tensor (batch, row, head, channel); strides in elements, channels contiguous.
struct Tensor {
  Address data = 0;
  std::int64_t batch_stride = 0, row_stride = 0, head_stride = 0;
};

// fp32 (batch, head, row), rows contiguous.
struct LseTensor {
  Address data = 0;
  std::int64_t batch_stride = 0, head_stride = 0;
};

struct Tensors {
  Tensor q, k, v, out, dout;  // read
  LseTensor lse;              // read
  Tensor dq, dk, dv;          // written whole
};

// Strides of tensors that are packed as (batch, row, head, channel); every address is 0.
Tensors packed_tensors(const Shape& shape);

struct Problem {
  Dtype dtype = Dtype::kBf16;
  Shape shape;
  Mask mask = Mask::kDense;
  float scale = 0;  // of the scores; 0 means 1 / sqrt(head_dim)
  TensorMemory tensor_memory = TensorMemory::kSplit;
  Signal signal = Signal::kWarp;

  Tensors tensors;
  Address workspace = 0;
  std::size_t workspace_bytes = 0;
};

// `scale`, or what its 0 stands for.
float effective_scale(const Problem& problem);

// Refuses a struct of another size and enumerators that do not exist; everything else is check.h's.
Status problem_from(const flashback_backward_arguments& arguments, Problem* problem);

}  // namespace flashback
