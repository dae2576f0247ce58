// Boxes of tensor maps: every swizzle and element type, hanging over each side of the tensor or lying
// outside, loaded, stored and added. The last dimension of the tensor counts the boxes, one for each CTA, so
// that no two meet.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tests/emulator/hardware/experiment.h"

namespace flashback::emulator::testing {
namespace {

struct Shape {
  std::string name;
  ElementType type;
  Swizzle swizzle;
  std::vector<std::uint64_t> dims;  // without the last
  std::vector<std::uint32_t> box;
  std::vector<std::vector<std::int32_t>> at;  // where each box begins
  const char* mode = ".tile";                 // also what is meant without it
  bool hinted = false;                        // loads come with a policy of the cache

  int rank() const { return static_cast<int>(dims.size()) + 1; }
  std::uint32_t element_bytes() const { return type == ElementType::kF32 ? 4 : 2; }
  std::uint32_t box_bytes() const {
    std::uint32_t bytes = element_bytes();
    for (std::uint32_t extent : box) bytes *= extent;
    return bytes;
  }
};

TensorMapRequest request_of(const Shape& shape) {
  TensorMapRequest request;
  request.type = shape.type;
  request.swizzle = shape.swizzle;
  request.rank = shape.rank();
  std::uint64_t stride = shape.element_bytes();
  for (int d = 0; d < request.rank; ++d) {
    const bool last = d + 1 == request.rank;
    request.dims[d] = last ? shape.at.size() : shape.dims[static_cast<std::size_t>(d)];
    request.box[d] = last ? 1 : shape.box[static_cast<std::size_t>(d)];
    stride = (stride * request.dims[d] + 15) / 16 * 16;  // padded: strides are multiples of 16
    if (!last) request.strides[d] = stride;
  }
  return request;
}

std::uint64_t tensor_bytes(const TensorMapRequest& request) {
  return request.strides[request.rank - 2] * request.dims[request.rank - 1];
}

// Words that are all different, small and whole as floats.
std::vector<std::byte> counting(std::size_t bytes, std::uint32_t first) {
  std::vector<std::byte> memory(bytes);
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    const float value = static_cast<float>(first + i / 4);
    std::memcpy(&memory[i], &value, 4);
  }
  return memory;
}

// What all kernels begin with: %s, 1024-aligned shared memory; %data, this CTA's dense box in global memory;
// the coordinates %c0.. of its box.
std::string prologue(const Shape& shape) {
  std::string text = fmt::format(
      ".version 8.8\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n"
      ".visible .entry test(.param .align 64 .b8 p[160])\n{{\n"
      ".reg .b32 %s, %m, %c<6>, %i, %v, %w, %cta, %tries;\n.reg .b64 %map, %data, %at, %coordinates, "
      "%flags;\n"
      ".reg .pred %first, %done, %more;\n"
      "mov.b64 %map, p;\ncvta.param.u64 %map, %map;\n"
      "ld.param.u64 %data, [p+136];\nld.param.u64 %coordinates, [p+144];\n"
      "mov.u32 %i, %tid.x;\nsetp.eq.u32 %first, %i, 0;\nmov.u32 %cta, %ctaid.x;\n"
      "mad.wide.u32 %data, %cta, {}, %data;\nmad.wide.u32 %coordinates, %cta, {}, %coordinates;\n"
      "mov.u32 %s, dynamic;\nadd.u32 %m, %s, {};\n",
      shape.box_bytes(), 4 * shape.dims.size(), shape.box_bytes());
  for (std::size_t d = 0; d < shape.dims.size(); ++d)
    text += fmt::format("ld.global.b32 %c{}, [%coordinates+{}];\n", d, 4 * d);
  return text;
}

std::string coordinates(const Shape& shape) {
  std::string list;
  for (std::size_t d = 0; d < shape.dims.size(); ++d) list += fmt::format("%c{}, ", d);
  return list + "%cta";
}

// The threads copy `bytes` between shared and global memory, word by word.
std::string copy(std::uint32_t bytes, bool to_global) {
  return fmt::format(
      "shl.b32 %i, %i, 2;\nCOPY:\nsetp.ge.u32 %more, %i, {};\n@%more bra COPIED;\n"
      "add.u32 %w, %s, %i;\ncvt.u64.u32 %at, %i;\nadd.s64 %at, %at, %data;\n{}add.u32 %i, %i, 128;\n"
      "bra COPY;\nCOPIED:\n",
      bytes,
      to_global ? "ld.shared.b32 %v, [%w];\nst.global.b32 [%at], %v;\n"
                : "ld.global.b32 %v, [%at];\nst.shared.b32 [%w], %v;\n");
}

// Waits for what the mbarrier expects, and not for ever: a flag says whether it came.
constexpr std::string_view kWaiting =
    "WAIT:\nmov.u32 %tries, 0;\nAGAIN:\n"
    "mbarrier.try_wait.parity.shared::cta.b64 %done, [%m], 0;\nadd.u32 %tries, %tries, 1;\n"
    "setp.lt.u32 %more, %tries, 100000;\n@%done bra CAME;\n@%more bra AGAIN;\nCAME:\n"
    "mbarrier.test_wait.parity.shared::cta.b64 %done, [%m], 0;\nselp.u32 %v, 1, 0, %done;\n"
    "ld.param.u64 %flags, [p+128];\nmad.wide.u32 %flags, %cta, 4, %flags;\n"
    "@%first st.global.b32 [%flags], %v;\n";

const char* hint(const Shape& shape) {
  return shape.hinted ? ".L2::cache_hint" : "";
}
const char* policy(const Shape& shape) {  // the policy "evict normally"
  return shape.hinted ? ", 0x1000000000000000" : "";
}

// The mbarrier expects the bytes of the whole box, also those out of bounds.
std::string loading(const Shape& shape) {
  return prologue(shape) +
         fmt::format(
             "@%first mbarrier.init.shared::cta.b64 [%m], 1;\n@%first fence.mbarrier_init.release.cluster;\n"
             "bar.sync 0;\n@!%first bra WAIT;\n@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], "
             "{0};\n"
             "@%first prefetch.tensormap [%map];\n"
             "@%first cp.async.bulk.tensor.{1}d.shared::cluster.global{3}.mbarrier::complete_tx::bytes{4} "
             "[%s], [%map, {{{2}}}], [%m]{5};\n",
             shape.box_bytes(), shape.rank(), coordinates(shape), shape.mode, hint(shape), policy(shape)) +
         std::string(kWaiting) + copy(shape.box_bytes(), true) + "ret;\n}\n";
}

// Two CTAs a cluster: each sends its box to both, and both have the two boxes in the order of their ranks.
std::string multicasting(const Shape& shape) {
  return prologue(shape) +
         fmt::format(
             ".reg .b16 %both;\nadd.u32 %m, %m, {0};\nmad.wide.u32 %data, %cta, {0}, %data;\n"
             "@%first mbarrier.init.shared::cta.b64 [%m], 1;\n@%first fence.mbarrier_init.release.cluster;\n"
             "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n@!%first bra WAIT;\n"
             "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], {1};\n"
             "mov.b16 %both, 3;\nmov.u32 %w, %cluster_ctarank;\nmad.lo.u32 %w, %w, {0}, %s;\n"
             "cp.async.bulk.tensor.{2}d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
             "cluster{4} [%w], [%map, {{{3}}}], [%m], %both{5};\n",
             shape.box_bytes(), 2 * shape.box_bytes(), shape.rank(), coordinates(shape), hint(shape),
             policy(shape)) +
         std::string(kWaiting) + copy(2 * shape.box_bytes(), true) +
         "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;\n}\n";
}

std::string storing(const Shape& shape, std::string_view operation) {
  return prologue(shape) + copy(shape.box_bytes(), false) +
         fmt::format(
             "fence.proxy.async.shared::cta;\nbar.sync 0;\n@!%first bra DONE;\n"
             "{}.bulk_group [%map, {{{}}}], [%s];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
             "DONE:\nret;\n}}\n",
             fmt::format(fmt::runtime(operation), shape.rank(), shape.mode), coordinates(shape));
}

Buffer places(const Shape& shape) {
  Buffer buffer{"places", {"s32", 4}, {}};
  for (const auto& at : shape.at) {
    const auto bytes = std::as_bytes(std::span(at));
    buffer.initial.insert(buffer.initial.end(), bytes.begin(), bytes.end());
  }
  return buffer;
}

Experiment launch_of(const Shape& shape, std::string module) {
  Experiment e;
  e.modules = {std::move(module)};
  e.block.x = 32;
  e.grid.x = static_cast<std::uint32_t>(shape.at.size());
  e.shared_bytes = shape.box_bytes() + 16;
  return e;
}

Experiment load_of(const Shape& shape) {
  Experiment e = launch_of(shape, loading(shape));
  const TensorMapRequest request = request_of(shape);
  e.maps = {{request, 3}};
  const std::size_t words = shape.at.size() * shape.box_bytes() / 4;
  e.buffers = {{"arrived", {"u32", 4}, std::vector<std::byte>(4 * shape.at.size()), shape.at.size()},
               {"boxes", {"u32", 4}, std::vector<std::byte>(4 * words, std::byte{0xa5}), words},
               places(shape),
               {"tensor", {"u32", 4}, counting(tensor_bytes(request), 1)}};
  return e;
}

Experiment multicast_of(const Shape& shape) {
  Experiment e = load_of(shape);
  e.modules = {multicasting(shape)};
  e.cluster.x = 2;
  e.shared_bytes += shape.box_bytes();
  Buffer& boxes = e.buffers[1];
  boxes.compared *= 2;
  boxes.initial.resize(2 * boxes.initial.size(), std::byte{0xa5});
  return e;
}

Experiment store_of(const Shape& shape, std::string_view operation) {
  Experiment e = launch_of(shape, storing(shape, operation));
  const TensorMapRequest request = request_of(shape);
  e.maps = {{request, 0}};
  const std::size_t words = tensor_bytes(request) / 4;
  e.buffers = {{"tensor", {"u32", 4}, counting(4 * words, 1000), words},
               {"boxes", {"u32", 4}, counting(shape.at.size() * shape.box_bytes(), 1)},
               places(shape),
               {"unused", {"u32", 4}, {}}};
  return e;
}

// Rows as wide as the swizzle, at 56 places around and across the edges of a tensor of 2.5 boxes by 10 rows:
// an H200 takes those whose first coordinate is a multiple of 16 bytes.
std::vector<Shape> edges() {
  std::vector<Shape> shapes;
  const struct {
    const char* name;
    ElementType type;
  } types[] = {{"bf16", ElementType::kBf16}, {"f16", ElementType::kF16}, {"f32", ElementType::kF32}};
  const struct {
    int bytes;
    Swizzle swizzle;
  } swizzles[] = {{0, Swizzle::kNone}, {32, Swizzle::k32}, {64, Swizzle::k64}, {128, Swizzle::k128}};
  for (const auto& type : types) {
    for (const auto& swizzle : swizzles) {
      Shape shape{
          fmt::format("{}_swizzle{}", type.name, swizzle.bytes), type.type, swizzle.swizzle, {}, {}, {}};
      const int row_bytes = swizzle.bytes == 0 ? 64 : swizzle.bytes;
      const int width = row_bytes / static_cast<int>(shape.element_bytes()), columns = 2 * width + width / 2;
      constexpr int kRows = 10, kBoxRows = 8;
      const int chunk = 16 / static_cast<int>(shape.element_bytes());
      shape.dims = {static_cast<std::uint64_t>(columns), kRows};
      shape.box = {static_cast<std::uint32_t>(width), kBoxRows};
      for (const int x :
           {-width, -width / 2, -chunk, 0, chunk, columns - width / 2, columns - chunk, columns}) {
        for (const int y : {-kBoxRows, -3, 0, 1, kRows - kBoxRows, kRows - 3, kRows})
          shape.at.push_back({x, y});
      }
      shapes.push_back(std::move(shape));
    }
  }
  return shapes;
}

std::vector<Shape> ranks() {
  return {{"rank2", ElementType::kF32, Swizzle::kNone, {100}, {32}, {{0}, {80}, {-4}, {68}, {100}, {-32}}},
          {"rank4",
           ElementType::kBf16,
           Swizzle::k128,
           {64, 21, 3},
           {64, 8, 2},
           {{0, 0, 0}, {0, 16, 1}, {0, -3, -1}, {32, 20, 2}, {0, 0, 3}},
           ""},
          {"rank5_tile",
           ElementType::kF32,
           Swizzle::k32,
           {16, 3, 4, 3},
           {8, 2, 3, 2},
           {{0, 0, 0, 0}, {4, 1, 2, -1}, {8, 1, 1, 3}, {0, 2, 3, 2}}},
          {"narrow32", ElementType::kF32, Swizzle::k32, {64}, {4}, {{0}, {4}}},
          {"rank5_plain",
           ElementType::kF32,
           Swizzle::kNone,
           {8, 3, 4, 3},
           {4, 2, 3, 2},
           {{0, 0, 0, 0}, {4, 1, 2, -1}, {-4, 2, -2, 2}, {4, -1, 3, 1}, {4, 1, 1, 3}, {0, 2, 3, 2}},
           ""},
          {"rank5_full_rows",
           ElementType::kF32,
           Swizzle::k32,
           {16, 3, 4, 3},
           {8, 2, 3, 2},
           {{0, 0, 0, 0}, {4, 1, 2, -1}, {-4, 2, -2, 2}, {12, -1, 3, 1}, {8, 1, 1, 3}, {0, 2, 3, 2}},
           ""},
          {"rank5_heads",
           ElementType::kBf16,
           Swizzle::k128,
           {64, 21, 3, 2},
           {64, 8, 1, 1},
           {{0, 0, 0, 0}, {0, 16, 2, 1}, {0, -3, 1, 0}, {32, 20, 2, 1}, {0, 0, 3, 1}, {0, 8, 1, 2}},
           ""}};
}

// Of each rank, with a policy of the cache.
std::vector<Shape> hinted() {
  std::vector<Shape> shapes = {
      {"hint_rank2", ElementType::kF32, Swizzle::k128, {72}, {32}, {{0}, {32}, {48}, {-8}}, ""},
      {"hint_rank3",
       ElementType::kF32,
       Swizzle::k128,
       {72, 20},
       {32, 8},
       {{0, 0}, {32, 16}, {48, 3}, {-8, -4}},
       ""},
      {"hint_rank4", ElementType::kF32, Swizzle::k128, {32, 21, 3}, {32, 8, 2}, {{0, 0, 0}, {4, 16, 2}}, ""},
      {"hint_rank5",
       ElementType::kF32,
       Swizzle::k128,
       {32, 21, 3, 2},
       {32, 8, 1, 2},
       {{0, 0, 0, 0}, {4, 16, 2, 1}},
       ""}};
  for (Shape& shape : shapes) shape.hinted = true;
  return shapes;
}

// Whole boxes and clipped ones; CTAs in pairs.
Shape pairs() {
  return {"bf16_swizzle128", ElementType::kBf16,
          Swizzle::k128,     {64, 20},
          {64, 8},           {{0, 0}, {0, 8}, {0, 16}, {0, -4}, {32, 4}, {-32, 12}, {0, 20}, {0, 1}}};
}

// Without the places below 0, where only loads may begin.
Shape above_zero(Shape shape) {
  std::erase_if(shape.at, [](const std::vector<std::int32_t>& at) {
    return std::any_of(at.begin(), at.end(), [](std::int32_t x) { return x < 0; });
  });
  return shape;
}

}  // namespace

std::vector<Recipe> box_experiments() {
  std::vector<Recipe> all;
  const auto add = [&](const char* kind, const Shape& shape, auto make) {
    all.push_back({fmt::format("{}_{}", kind, shape.name), [shape, make] { return make(shape); }});
  };
  const auto store = [](const Shape& shape) {
    return store_of(shape, "cp.async.bulk.tensor.{}d.global.shared::cta{}");
  };
  const auto reduce = [](const Shape& shape) {
    return store_of(shape, "cp.reduce.async.bulk.tensor.{}d.global.shared::cta.add{}");
  };
  std::vector<Shape> shapes = edges();
  for (Shape& shape : ranks()) shapes.push_back(std::move(shape));
  for (Shape& shape : hinted()) {
    if (shape.rank() <= 3) add("box_multicast", shape, multicast_of);
    shapes.push_back(std::move(shape));
  }
  for (const Shape& shape : shapes) {
    add("box_load", shape, load_of);
    const Shape from_zero = above_zero(shape);
    add("box_store", from_zero, store);
    if (shape.type == ElementType::kF32) add("box_add", from_zero, reduce);
  }
  add("box_multicast", pairs(), multicast_of);
  return all;
}

}  // namespace flashback::emulator::testing
