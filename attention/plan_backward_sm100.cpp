// The plan of a backward pass on Blackwell: a CTA for each tile of keys and query head.
#include <numbers>

#include "attention/backward_planner.h"

namespace flashback {
namespace {

namespace blackwell = sm100::backward;

class BlackwellPlanner : BackwardPlanner {
 public:
  BlackwellPlanner(const Problem& problem, const Kernel& kernel, Plan* plan)
      : BackwardPlanner(problem, kernel, plan),
        wide_(shape().heads != shape().kv_heads || problem.fp32_gradients) {
    add_parts();
  }

  void add_launches() {
    schedule();
    preprocess(lse_log2_, delta_, dq_accum_, nullptr);
    sink();
    const blackwell::Parameters main = main_parameters();
    if (needs_.queries && needs_.keys) {
      add("main", kernel_.main,
          {static_cast<std::uint32_t>(sequences_.k.all_tiles), static_cast<std::uint32_t>(shape().heads), 1},
          main);
      add_maps();
    }
    postprocess_queries(main.dq_accum, scale_);
    if (wide_ || gaps_) {
      postprocess_keys("dk", tensors().dk, main.dk_accum, scale_);
      postprocess_keys("dv", tensors().dv, main.dv_accum, 1);
    }
  }

 private:
  void add_parts() {
    const auto rows = static_cast<std::size_t>(kernel_.tile_q),
               keys = static_cast<std::size_t>(kernel_.tile_k);
    const auto channels = static_cast<std::size_t>(kernel_.head_dim);
    lse_log2_ = add_part<float>("lse_log2", query_tiles() * rows);  // [heads][tiles][rows]
    delta_ = add_part<float>("delta", query_tiles() * rows);
    dq_accum_ = add_part<float>("dq_accum", query_tiles() * rows * channels);
    if (wide_) {
      dk_accum_ = add_cleared_part<float>("dk_accum", key_tiles() * keys * channels);
      dv_accum_ = add_cleared_part<float>("dv_accum", key_tiles() * keys * channels);
    }
    if (problem_.deterministic) {
      dq_turns_ = add_cleared_part<std::int32_t>("dq_turns", query_tiles());
      if (wide_) dk_turns_ = add_cleared_part<std::int32_t>("dk_turns", key_tiles() * 4);
      next_work_ = add_cleared_part<std::int32_t>("next_work", 1);
    }
    add_shared_parts();
  }

  blackwell::Parameters main_parameters() const {
    return {.q = {},
            .k = {},
            .v = {},
            .dout = {},
            .dk = {},
            .dv = {},
            .lse_log2 = lse_log2_,
            .delta = delta_,
            .dq_accum = dq_accum_,
            .dk_accum = dk_accum_,
            .dv_accum = dv_accum_,
            .dq_turns = dq_turns_,
            .dk_turns = dk_turns_,
            .next_work = next_work_,
            .scale = scale_,
            .scale_log2 = static_cast<float>(scale_ * std::numbers::log2e),
            .group = static_cast<std::int32_t>(shape().heads / shape().kv_heads),
            .sequences = sequences_};
  }

  // Loads take 64 channels of a tile of rows, stores of dK and dV 32.
  void add_maps() {
    using P = blackwell::Parameters;
    const Tensors& t = tensors();
    const Box q_box = {tile::kRowElements, kernel_.tile_q, Swizzle::k128},
              k_box = {tile::kRowElements, kernel_.tile_k, Swizzle::k128},
              store_box = {blackwell::kBlockColumns, kernel_.tile_k, Swizzle::k64};
    plan_.maps = {query_map("q", offsetof(P, q), t.q, q_box), key_map("k", offsetof(P, k), t.k, k_box),
                  key_map("v", offsetof(P, v), t.v, k_box),
                  query_map("dout", offsetof(P, dout), t.dout, q_box)};
    if (wide_) return;
    plan_.maps.push_back(key_map("dk", offsetof(P, dk), t.dk, store_box));
    plan_.maps.push_back(key_map("dv", offsetof(P, dv), t.dv, store_box));
  }

  const bool wide_;  // dK and dV are summed in global memory
  float *lse_log2_, *delta_, *dq_accum_, *dk_accum_ = nullptr, *dv_accum_ = nullptr;
  std::int32_t *dq_turns_ = nullptr, *dk_turns_ = nullptr, *next_work_ = nullptr;
};

}  // namespace

void plan_backward_sm100(const Problem& problem, const Kernel& kernel, Plan* plan) {
  BlackwellPlanner(problem, kernel, plan).add_launches();
}

}  // namespace flashback
