#include "attention/backward_planner.h"

namespace flashback {
namespace {

common::RowView row_view(const LseTensor& t, const Sequences& sequences) {
  return {pointer<const float>(t.data), sequences.packed() ? 0 : t.batch_stride, t.head_stride};
}

}  // namespace

BackwardPlanner::BackwardPlanner(const Problem& problem, const Kernel& kernel, Plan* plan)
    : Planner(problem, kernel, plan),
      gaps_(needs_.ragged || !needs_.queries || problem.mask.left != kUnlimited) {}

void BackwardPlanner::add_shared_parts() {
  add_schedule_parts();
  if (tensors().sink) dsink_parts_ = add_part<float>("dsink_parts", query_tiles());
}

void BackwardPlanner::preprocess(float* lse_log2, float* delta, float* dq_accum, std::int32_t* zero) {
  const Tensors& t = tensors();
  const Sequences& q = problem_.q_sequences;
  add("preprocess", kernel_.preprocess,
      {static_cast<std::uint32_t>(sequences_.q.all_tiles), static_cast<std::uint32_t>(shape().heads), 1},
      common::PreprocessParameters{.out = query_view(t.out),
                                   .dout = query_view(t.dout),
                                   .lse = row_view(t.lse, q),
                                   .dlse = row_view(t.dlse, q),
                                   .sink = pointer<const float>(t.sink),
                                   .lse_log2 = lse_log2,
                                   .delta = delta,
                                   .dq_accum = dq_accum,
                                   .dsink_parts = dsink_parts_,
                                   .zero = zero,
                                   .sequences = sequences_,
                                   .head_dim = static_cast<std::int32_t>(shape().head_dim)});
}

void BackwardPlanner::sink() {
  const Tensors& t = tensors();
  if (!t.sink) return;
  add("sink", kernel_.sink, {static_cast<std::uint32_t>(shape().heads), 1, 1},
      common::SinkParameters{.dsink_parts = dsink_parts_,
                             .lse = row_view(t.lse, problem_.q_sequences),
                             .dlse = row_view(t.dlse, problem_.q_sequences),
                             .sink = pointer<const float>(t.sink),
                             .dsink = pointer<float>(t.dsink),
                             .sequences = sequences_});
}

void BackwardPlanner::postprocess_queries(const float* accum, float scale) {
  postprocess("postprocess", tensors().dq, false, accum, scale);
}
void BackwardPlanner::postprocess_keys(std::string_view step, const Tensor& gradient, const float* accum,
                                       float scale) {
  postprocess(step, gradient, true, accum, scale);
}

// A CTA for each 128 rows in memory, whether they are in sight or not.
void BackwardPlanner::postprocess(std::string_view step, const Tensor& gradient, bool of_keys,
                                  const float* accum, float scale) {
  const Shape& s = shape();
  const std::uint32_t x = of_keys
                              ? ctas_in_memory(s.seqlen_k, problem_.k_sequences, common::kPostprocessRows)
                              : ctas_in_memory(s.seqlen_q, problem_.q_sequences, common::kPostprocessRows);
  const auto heads = static_cast<std::uint32_t>(of_keys ? s.kv_heads : s.heads);
  add(step, kernel_.postprocess, {x, heads, 1},
      common::PostprocessParameters{.accum = accum,
                                    .gradient = of_keys ? key_view(gradient) : query_view(gradient),
                                    .scale = scale,
                                    .sequences = sequences_,
                                    .head_dim = static_cast<std::int32_t>(s.head_dim),
                                    .of_keys = of_keys,
                                    .fp32 = problem_.fp32_gradients,
                                    .accumulate = problem_.accumulate,
                                    .leave_unused_rows = problem_.leave_unused_rows});
}

}  // namespace flashback
