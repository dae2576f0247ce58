#include "bench/peer.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <bit>
#include <filesystem>

#include "bench/contender.h"
#include "program/failure.h"

namespace flashback::bench {
namespace {

using program::refuse;

flashback_peer_tensor argument(const Tensor& tensor) {
  return {std::bit_cast<void*>(tensor.data), tensor.batch_stride, tensor.row_stride, tensor.head_stride};
}

class Peer final : public Contender {
 public:
  // Never closed: what it allocated, and its runtime, live as long as the process.
  Peer(const std::string& file, int ordinal, Direction direction)
      : name_(std::filesystem::path(file).stem().string()), ordinal_(ordinal) {
    // A path, so that the loader does not look for a name in its own directories.
    void* library = dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) refuse(fmt::format("--peer {} cannot be opened: {}", file, dlerror()));
    const std::string function = fmt::format("flashback_peer_{}", flashback::name(direction));
    run_ = reinterpret_cast<decltype(run_)>(dlsym(library, function.c_str()));
    if (!run_)
      refuse(fmt::format("--peer {} has no function {}, which bench/peer.h describes", file, function));
  }

  const std::string& name() const override { return name_; }

  void begin(const Pass& pass) override {
    const Shape& s = pass.cell.shape;
    const Tensors& t = pass.tensors;
    Problem problem;
    problem.shape = s;
    arguments_ = {.batch = s.batch,
                  .heads = s.heads,
                  .kv_heads = s.kv_heads,
                  .seqlen_q = s.seqlen_q,
                  .seqlen_k = s.seqlen_k,
                  .head_dim = s.head_dim,
                  .fp16 = pass.cell.dtype == Dtype::kF16,
                  .window_left = pass.cell.mask.left,
                  .window_right = pass.cell.mask.right,
                  .deterministic = pass.cell.deterministic,
                  .cu_seqlens = std::bit_cast<const std::int32_t*>(pass.cu_seqlens),
                  .scale = effective_scale(problem),
                  .q = argument(t.q),
                  .k = argument(t.k),
                  .v = argument(t.v),
                  .out = argument(t.out),
                  .dout = argument(t.dout),
                  .lse = std::bit_cast<float*>(t.lse.data),
                  .dq = argument(t.dq),
                  .dk = argument(t.dk),
                  .dv = argument(t.dv),
                  .device = ordinal_,
                  .stream = pass.stream};
  }

  void enqueue() override {
    if (const char* sentence = run_(&arguments_))
      throw program::Failure(program::kInternal, fmt::format("peer {}: {}", name_, sentence));
  }

 private:
  const std::string name_;
  const int ordinal_;
  const char* (*run_)(const flashback_peer_arguments*) = nullptr;
  flashback_peer_arguments arguments_{};
};

}  // namespace

std::unique_ptr<Contender> open_peer(const std::string& file, int ordinal, Direction direction) {
  return std::make_unique<Peer>(file, ordinal, direction);
}

}  // namespace flashback::bench
