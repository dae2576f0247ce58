// The question: one pass over attention, as the host speaks of it. Shapes first, then where the tensors are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "device/device.h"
#include "flashback/flashback.h"

namespace flashback {

enum class Direction { kForward, kBackward };
enum class Dtype { kBf16, kF16 };
enum class TensorMemory { kSplit, kAliased };
enum class Signal { kWarp, kCta };

// The words of the command line, of JSON and of kernel names.
std::string_view name(Arch arch);            // sm90 | sm100
std::string_view name(Direction direction);  // forward | backward
std::string_view name(Dtype dtype);          // bf16 | fp16
std::string_view name(TensorMemory memory);  // split | aliased
std::string_view name(Signal signal);        // warp | cta

// A band of keys: query row i stands at key j = i + seqlen_k - seqlen_q and sees the keys from j - left to
// j + right. The last row stands at the last key.
inline constexpr std::int64_t kUnlimited = -1;
struct Mask {
  std::int64_t left = kUnlimited, right = kUnlimited;

  static const Mask kDense, kCausal;
  bool operator==(const Mask&) const = default;
};
inline constexpr Mask Mask::kDense = {};
inline constexpr Mask Mask::kCausal = {kUnlimited, 0};

// Kernels are compiled for a kind of mask; the bounds of a window are told at run time.
enum class MaskKind { kDense, kCausal, kWindow };
MaskKind kind_of(const Mask& mask);
std::string_view name(MaskKind kind);  // dense | causal | window
std::string name(const Mask& mask);    // dense | causal | window 64,-1

struct Shape {
  std::int64_t batch = 1;
  std::int64_t heads = 1, kv_heads = 1;
  std::int64_t seqlen_q = 1, seqlen_k = 1;  // rows of a sequence, or of all packed ones
  std::int64_t head_dim = 64;
};

// int32 numbers on the device that say where the sequences of one side begin and how many rows take part.
struct Sequences {
  Address cu_seqlens = 0;  // [batch + 1]; 0: every sequence has all rows of a padded tensor
  Address seqused = 0;     // [batch]; 0: all

  bool packed() const { return cu_seqlens != 0; }
  bool ragged() const { return cu_seqlens != 0 || seqused != 0; }
};

// Rows of q, or of k, in memory.
inline std::int64_t rows_in_memory(std::int64_t seqlen, std::int64_t batch, const Sequences& sequences) {
  return sequences.packed() ? seqlen : batch * seqlen;
}

// Tiles of `tile` rows that the sequences have, at the most: each starts with a tile of its own.
std::int64_t padded_tiles(std::int64_t seqlen, std::int64_t batch, const Sequences& sequences, int tile);

// A tensor (batch, row, head, channel); strides in elements, channels contiguous. Packed sequences have no
// batch dimension.
struct Tensor {
  Address data = 0;
  std::int64_t batch_stride = 0, row_stride = 0, head_stride = 0;
};

// fp32 (batch, head, row), rows contiguous. Packed sequences: (head, row).
struct LseTensor {
  Address data = 0;
  std::int64_t batch_stride = 0, head_stride = 0;
};

struct Tensors {
  Tensor q, k, v;    // read
  Address sink = 0;  // read, fp32 of each head; 0: there is none
  Tensor out;        // written by the forward pass, read by the backward pass
  LseTensor lse;     // the same; no data: the forward pass writes none
  // Of the backward pass alone.
  Tensor dout;        // read
  LseTensor dlse;     // read; no data: there is none
  Tensor dq, dk, dv;  // written whole
  Address dsink = 0;  // written, fp32 of each head
};

// Strides of tensors that are packed as (batch, row, head, channel); every address is 0.
Tensors packed_tensors(const Shape& shape);

struct Problem {
  Direction direction = Direction::kBackward;
  Dtype dtype = Dtype::kBf16;
  Shape shape;
  Sequences q_sequences, k_sequences;
  Mask mask;
  float scale = 0;  // of the scores; 0 means 1 / sqrt(head_dim)
  bool leave_unused_rows = false;
  // Of the backward pass alone.
  bool fp32_gradients = false, accumulate = false;
  bool deterministic = false;
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
Status problem_from(const flashback_forward_arguments& arguments, Problem* problem);

}  // namespace flashback
