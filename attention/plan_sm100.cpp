// The plan of a backward pass on Blackwell: a CTA for each tile of keys and query head.
#include <algorithm>
#include <numbers>

#include "attention/plan_parts.h"

namespace flashback {
namespace {

namespace blackwell = sm100::backward;

// What the problem asks of the kernels beside dq, dk, dv of whole sequences.
struct Needs {
  bool queries, keys;  // there are rows of either kind in memory
  bool ragged;         // sequences differ: their tiles are counted on the device
  bool wide;           // dK and dV are summed in global memory
  bool gaps;           // rows of k may be out of sight: no CTA writes their dK and dV
};

Needs needs_of(const Problem& p) {
  const Shape& s = p.shape;
  Needs n;
  n.queries = rows_in_memory(s.seqlen_q, s.batch, p.q_sequences) > 0;
  n.keys = rows_in_memory(s.seqlen_k, s.batch, p.k_sequences) > 0;
  n.ragged = p.q_sequences.ragged() || p.k_sequences.ragged();
  n.wide = s.heads != s.kv_heads || p.fp32_gradients;
  n.gaps = n.ragged || !n.queries || p.mask.left != kUnlimited;
  return n;
}

std::int32_t bound_of(std::int64_t bound) {
  return bound == kUnlimited || bound > (1 << 30) ? shared::kUnbounded : static_cast<std::int32_t>(bound);
}

shared::Sequences sequences_of(const Problem& problem, const Kernel& kernel) {
  const Shape& s = problem.shape;
  const auto side = [&](std::int64_t seqlen, const Sequences& sequences, int tile) {
    return shared::Side{
        .cu_seqlens = pointer<const std::int32_t>(sequences.cu_seqlens),
        .seqused = pointer<const std::int32_t>(sequences.seqused),
        .first_tile = nullptr,
        .rows = static_cast<std::int32_t>(seqlen),
        .tiles = 0,
        .all_tiles = static_cast<std::int32_t>(padded_tiles(seqlen, s.batch, sequences, tile))};
  };
  shared::Sequences all = {.q = side(s.seqlen_q, problem.q_sequences, kernel.tile_q),
                           .k = side(s.seqlen_k, problem.k_sequences, kernel.tile_k),
                           .batch = static_cast<std::int32_t>(s.batch),
                           .left = bound_of(problem.mask.left),
                           .right = bound_of(problem.mask.right)};
  if (problem.q_sequences.ragged() || problem.k_sequences.ragged()) return all;
  // All sequences are alike: what is in sight of one is known here.
  const shared::Sight sight = shared::sight_of(all, 0);
  const auto count = [&](shared::Side& of, const shared::Rows& rows, int tile) {
    of.tiles = shared::tiles_of(rows.count, tile);
    of.all_tiles = static_cast<std::int32_t>(s.batch * of.tiles);
  };
  count(all.q, sight.q, kernel.tile_q);
  count(all.k, sight.k, kernel.tile_k);
  return all;
}

Workspace workspace_of(const Problem& problem, const Kernel& kernel, const Needs& needs,
                       const shared::Sequences& sequences) {
  const Shape& shape = problem.shape;
  const auto all = [](std::int64_t heads, const shared::Side& side) {
    return static_cast<std::size_t>(heads) * static_cast<std::size_t>(side.all_tiles);
  };
  const std::size_t q_tiles = all(shape.heads, sequences.q), k_tiles = all(shape.kv_heads, sequences.k);
  const auto rows = static_cast<std::size_t>(kernel.tile_q), keys = static_cast<std::size_t>(kernel.tile_k);
  const std::size_t channels = static_cast<std::size_t>(kernel.head_dim), number = sizeof(std::int32_t);
  Workspace w;
  w.add("lse_log2", sizeof(float) * q_tiles * rows);  // [heads][tiles][rows]
  w.add("delta", sizeof(float) * q_tiles * rows);
  w.add("dq_accum", sizeof(float) * q_tiles * rows * channels);
  if (needs.wide) {
    w.add("dk_accum", sizeof(float) * k_tiles * keys * channels);
    w.add("dv_accum", sizeof(float) * k_tiles * keys * channels);
  }
  if (problem.deterministic) {
    w.add("dq_turns", number * q_tiles);
    if (needs.wide) w.add("dk_turns", number * k_tiles * 4);
    w.add("next_work", number);
  }
  if (needs.ragged) {
    w.add("q_first_tile", number * static_cast<std::size_t>(shape.batch + 1));
    w.add("k_first_tile", number * static_cast<std::size_t>(shape.batch + 1));
  }
  if (problem.tensors.sink) w.add("dsink_parts", sizeof(float) * q_tiles);
  return w;
}

// Of the workspace, where the part exists.
template <typename T>
T* part(const Problem& problem, const Workspace& workspace, std::string_view name) {
  const WorkspacePart* found = workspace.find(name);
  return found ? pointer<T>(problem, *found) : nullptr;
}

common::RowView row_view(const LseTensor& t, const Sequences& sequences) {
  return {pointer<const float>(t.data), sequences.packed() ? 0 : t.batch_stride, t.head_stride};
}

common::View side_view(const Tensor& t, const Sequences& sequences) {
  common::View v = view(t);
  if (sequences.packed()) v.batch_stride = 0;
  return v;
}

// Loads take 64 channels of a tile of rows, stores of dK and dV 32.
std::vector<PlannedMap> maps_of(const Problem& problem, const Kernel& kernel, const Needs& needs) {
  using P = blackwell::Parameters;
  const Shape& s = problem.shape;
  const Tensors& t = problem.tensors;
  const Box q_box = {tile::kRowElements, kernel.tile_q, Swizzle::k128},
            k_box = {tile::kRowElements, kernel.tile_k, Swizzle::k128},
            store_box = {blackwell::kBlockColumns, kernel.tile_k, Swizzle::k64};
  auto of_q = [&](const Tensor& tensor) {
    return sequence_map(tensor, problem, problem.q_sequences, s.seqlen_q, s.heads, q_box);
  };
  auto of_k = [&](const Tensor& tensor, const Box& box) {
    return sequence_map(tensor, problem, problem.k_sequences, s.seqlen_k, s.kv_heads, box);
  };
  std::vector<PlannedMap> maps = {{"q", offsetof(P, q), of_q(t.q)},
                                  {"k", offsetof(P, k), of_k(t.k, k_box)},
                                  {"v", offsetof(P, v), of_k(t.v, k_box)},
                                  {"dout", offsetof(P, dout), of_q(t.dout)}};
  if (!needs.wide) {
    maps.push_back({"dk", offsetof(P, dk), of_k(t.dk, store_box)});
    maps.push_back({"dv", offsetof(P, dv), of_k(t.dv, store_box)});
  }
  return maps;
}

class Planner {
 public:
  Planner(const Problem& problem, const Kernel& kernel)
      : problem_(problem),
        kernel_(kernel),
        needs_(needs_of(problem)),
        sequences_(sequences_of(problem, kernel)) {
    plan_.problem = problem;
    plan_.kernel = &kernel;
    plan_.workspace = workspace_of(problem, kernel, needs_, sequences_);
    main_ = main_parameters();
  }

  Plan plan() {
    for (std::string_view name : {"dk_accum", "dv_accum", "dq_turns", "dk_turns", "next_work"}) {
      if (const WorkspacePart* part = plan_.workspace.find(name)) plan_.cleared.push_back(*part);
    }
    if (needs_.ragged) schedule();
    const auto heads = static_cast<std::uint32_t>(problem_.shape.heads);
    const auto grid = [&](const shared::Side& side) {
      return Dim3{static_cast<std::uint32_t>(side.all_tiles), heads, 1};
    };
    add("preprocess", kernel_.preprocess, grid(sequences_.q), preprocess_parameters());
    if (problem_.tensors.sink) add("sink", kernel_.sink, {heads, 1, 1}, sink_parameters());
    if (needs_.queries && needs_.keys) {
      add("main", kernel_.main, grid(sequences_.k), main_);
      plan_.maps = maps_of(problem_, kernel_, needs_);
    }
    const Tensors& t = problem_.tensors;
    postprocess("postprocess", t.dq, main_.dq_accum, main_.scale, false);
    if (needs_.wide || needs_.gaps) {
      postprocess("dk", t.dk, main_.dk_accum, main_.scale, true);
      postprocess("dv", t.dv, main_.dv_accum, 1, true);
    }
    return std::move(plan_);
  }

 private:
  // A launch without CTAs is none.
  void add(std::string_view step, const Entry& entry, Dim3 grid, const EntryParameters& parameters) {
    if (grid.x > 0 && grid.y > 0) plan_.launches.push_back(planned_launch(step, entry, grid, parameters));
  }

  template <typename T>
  T* workspace(std::string_view name) const {
    return part<T>(problem_, plan_.workspace, name);
  }

  void schedule() {
    common::ScheduleParameters p = {.sequences = sequences_,
                                    .q_first_tile = workspace<std::int32_t>("q_first_tile"),
                                    .k_first_tile = workspace<std::int32_t>("k_first_tile"),
                                    .q_tile_rows = kernel_.tile_q,
                                    .k_tile_rows = kernel_.tile_k};
    add("schedule", kernel_.schedule, {1, 1, 1}, p);
    sequences_.q.first_tile = p.q_first_tile;
    sequences_.k.first_tile = p.k_first_tile;
    main_.sequences = sequences_;
  }

  blackwell::Parameters main_parameters() const {
    const float scale = effective_scale(problem_);
    return {.q = {},
            .k = {},
            .v = {},
            .dout = {},
            .dk = {},
            .dv = {},
            .lse_log2 = workspace<float>("lse_log2"),
            .delta = workspace<float>("delta"),
            .dq_accum = workspace<float>("dq_accum"),
            .dk_accum = workspace<float>("dk_accum"),
            .dv_accum = workspace<float>("dv_accum"),
            .dq_turns = workspace<std::int32_t>("dq_turns"),
            .dk_turns = workspace<std::int32_t>("dk_turns"),
            .next_work = workspace<std::int32_t>("next_work"),
            .scale = scale,
            .scale_log2 = static_cast<float>(scale * std::numbers::log2e),
            .group = static_cast<std::int32_t>(problem_.shape.heads / problem_.shape.kv_heads),
            .sequences = sequences_};
  }

  common::PreprocessParameters preprocess_parameters() const {
    const Tensors& t = problem_.tensors;
    const Sequences& q = problem_.q_sequences;
    return {.out = side_view(t.out, q),
            .dout = side_view(t.dout, q),
            .lse = row_view(t.lse, q),
            .dlse = row_view(t.dlse, q),
            .sink = pointer<const float>(t.sink),
            .lse_log2 = workspace<float>("lse_log2"),
            .delta = workspace<float>("delta"),
            .dq_accum = workspace<float>("dq_accum"),
            .dsink_parts = workspace<float>("dsink_parts"),
            .sequences = sequences_,
            .head_dim = static_cast<std::int32_t>(problem_.shape.head_dim)};
  }

  common::SinkParameters sink_parameters() const {
    const Tensors& t = problem_.tensors;
    return {.dsink_parts = workspace<float>("dsink_parts"),
            .lse = row_view(t.lse, problem_.q_sequences),
            .dlse = row_view(t.dlse, problem_.q_sequences),
            .sink = pointer<const float>(t.sink),
            .dsink = pointer<float>(t.dsink),
            .sequences = sequences_};
  }

  // A CTA for each 128 rows in memory, whether they are in sight or not.
  void postprocess(std::string_view step, const Tensor& gradient, const float* accum, float scale,
                   bool of_keys) {
    const Shape& s = problem_.shape;
    const Sequences& sequences = of_keys ? problem_.k_sequences : problem_.q_sequences;
    const std::int64_t seqlen = of_keys ? s.seqlen_k : s.seqlen_q;
    const std::int64_t batches = sequences.packed() ? 1 : s.batch;
    const auto x = static_cast<std::uint32_t>(batches * tiles(seqlen, common::kTileRows));
    const auto heads = static_cast<std::uint32_t>(of_keys ? s.kv_heads : s.heads);
    add(step, kernel_.postprocess, {x, heads, 1},
        common::PostprocessParameters{.accum = accum,
                                      .gradient = side_view(gradient, sequences),
                                      .scale = scale,
                                      .sequences = sequences_,
                                      .head_dim = static_cast<std::int32_t>(s.head_dim),
                                      .of_keys = of_keys,
                                      .fp32 = problem_.fp32_gradients,
                                      .accumulate = problem_.accumulate,
                                      .leave_unused_rows = problem_.leave_unused_rows});
  }

  const Problem& problem_;
  const Kernel& kernel_;
  const Needs needs_;
  shared::Sequences sequences_;
  blackwell::Parameters main_;
  Plan plan_;
};

}  // namespace

Plan plan_sm100(const Problem& problem, const Kernel& kernel) {
  return Planner(problem, kernel).plan();
}

}  // namespace flashback
