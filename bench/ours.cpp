#include <bit>

#include "attention/device_handle.h"
#include "bench/contender.h"
#include "program/failure.h"

namespace flashback::bench {
namespace {

constexpr std::uint32_t kPoison = 0xffffffff;  // a NaN in fp32, and twice one in 16 bit

flashback_tensor argument(const Tensor& tensor) {
  return {std::bit_cast<void*>(tensor.data), tensor.batch_stride, tensor.row_stride, tensor.head_stride};
}

// What both passes are told.
template <class Arguments>
Arguments common_arguments(const Pass& pass) {
  const Shape& s = pass.cell.shape;
  const Mask& mask = pass.cell.mask;
  const Tensors& t = pass.tensors;
  Arguments a{};
  a.size = sizeof a;
  a.dtype = pass.cell.dtype == Dtype::kBf16 ? FLASHBACK_BF16 : FLASHBACK_F16;
  a.batch = s.batch;
  a.heads = s.heads;
  a.kv_heads = s.kv_heads;
  a.seqlen_q = pass.cell.packed ? s.batch * s.seqlen_q : s.seqlen_q;
  a.seqlen_k = pass.cell.packed ? s.batch * s.seqlen_k : s.seqlen_k;
  a.head_dim = s.head_dim;
  a.causal = mask == Mask::kCausal;
  if (kind_of(mask) == MaskKind::kWindow) a.window = {1, mask.left, mask.right};
  a.cu_seqlens_q = a.cu_seqlens_k = std::bit_cast<const std::int32_t*>(pass.cu_seqlens);
  a.q = argument(t.q);
  a.k = argument(t.k);
  a.v = argument(t.v);
  a.out = argument(t.out);
  a.lse = {std::bit_cast<float*>(t.lse.data), t.lse.batch_stride, t.lse.head_stride};
  a.stream = pass.stream;
  return a;
}

flashback_backward_arguments backward_arguments(const Pass& pass) {
  const Tensors& t = pass.tensors;
  auto a = common_arguments<flashback_backward_arguments>(pass);
  a.deterministic = pass.cell.deterministic;
  a.dout = argument(t.dout);
  a.dq = argument(t.dq);
  a.dk = argument(t.dk);
  a.dv = argument(t.dv);
  return a;
}

class Ours final : public Contender {
 public:
  explicit Ours(flashback_device* device) : device_(device), workbench_(*device->workbench) {}
  ~Ours() override { release(); }

  const std::string& name() const override { return name_; }

  void begin(const Pass& pass) override {
    release();
    forward_ = pass.cell.direction == Direction::kForward;
    if (forward_) {
      forward_arguments_ = common_arguments<flashback_forward_arguments>(pass);
      take_workspace(pass.stream, flashback_forward_workspace, forward_arguments_);
    } else {
      backward_arguments_ = backward_arguments(pass);
      take_workspace(pass.stream, flashback_backward_workspace, backward_arguments_);
    }
  }

  void enqueue() override {
    demand(forward_ ? flashback_forward(device_, &forward_arguments_, &message_)
                    : flashback_backward(device_, &backward_arguments_, &message_));
  }

 private:
  void demand(flashback_status status) const {
    if (status == FLASHBACK_OK) return;
    const bool usage = status == FLASHBACK_INVALID || status == FLASHBACK_UNSUPPORTED;
    throw program::Failure(usage ? program::kUsage : program::kInternal, message_.text);
  }

  template <class Function, class Arguments>
  void take_workspace(Stream stream, Function workspace_bytes, Arguments& arguments) {
    std::size_t bytes = 0;
    demand(workspace_bytes(device_, &arguments, &bytes, &message_));
    bytes = (bytes + 3) / 4 * 4;
    program::require(workbench_.allocate(bytes, &workspace_));
    program::require(workbench_.fill(workspace_, kPoison, bytes / 4, stream));
    arguments.workspace = std::bit_cast<void*>(workspace_);
    arguments.workspace_bytes = bytes;
  }

  void release() {
    if (workspace_) workbench_.release(workspace_);
    workspace_ = 0;
  }

  const std::string name_ = "flashback";
  flashback_device* const device_;
  Workbench& workbench_;
  bool forward_ = false;
  flashback_forward_arguments forward_arguments_{};
  flashback_backward_arguments backward_arguments_{};
  flashback_message message_{};
  Address workspace_ = 0;
};

}  // namespace

std::unique_ptr<Contender> make_ours(flashback_device* device) {
  return std::make_unique<Ours>(device);
}

}  // namespace flashback::bench
