#include "program/run_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <cstring>

#include "attention/reference/rounding.h"
#include "program/failure.h"
#include "program/safetensors.h"

namespace flashback::program {
namespace {

using Entry = SafetensorsFile::Entry;

std::string_view stored_name(Dtype dtype) {
  return dtype == Dtype::kBf16 ? "BF16" : "F16";
}

class Reader {
 public:
  Reader(const std::filesystem::path& path, Dtype dtype) : path_(path.string()), dtype_(dtype) {
    require(SafetensorsFile::open(path, &file_));
  }

  [[noreturn]] void refuse_tensor(const std::string& tensor, const std::string& what) const {
    refuse(fmt::format("{}: {} {}", path_, tensor, what));
  }

  const Entry* find(const std::string& tensor) const { return file_.find(tensor); }

  const Entry& demand(const std::string& tensor) const {
    if (const Entry* entry = find(tensor)) return *entry;
    std::vector<std::string> names;
    for (const Entry& entry : file_.entries()) names.push_back(entry.name);
    refuse(fmt::format("{}: has no tensor {}; it must hold q, k, v and dout, and has {}", path_, tensor,
                       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }

  // The tensor of a side by its extents: (batch, rows, heads, channels), of packed sequences (rows, heads,
  // channels) with a batch of one.
  std::array<std::int64_t, 4> demand_extents(const Entry& entry, bool packed) const {
    const std::vector<std::int64_t>& s = entry.shape;
    if (packed && s.size() == 3) return {1, s[0], s[1], s[2]};
    if (!packed && s.size() == 4) return {s[0], s[1], s[2], s[3]};
    refuse_tensor(entry.name, fmt::format("has the shape {}; it must be {}", format_shape(s),
                                          packed ? "(rows, heads, channels), because its sequences are packed"
                                                 : "(batch, rows, heads, channels)"));
  }

  void demand_shape(const Entry& entry, const std::vector<std::int64_t>& shape, const char* why) const {
    if (entry.shape == shape) return;
    refuse_tensor(entry.name, fmt::format("has the shape {}; {} makes it {}", format_shape(entry.shape), why,
                                          format_shape(shape)));
  }

  // Of the dtype, or fp32, which is rounded.
  void demand_dtype(const Entry& entry) const {
    if (entry.dtype == stored_name(dtype_) || entry.dtype == "F32") return;
    const Dtype other = dtype_ == Dtype::kBf16 ? Dtype::kF16 : Dtype::kBf16;
    const std::string hint =
        entry.dtype == stored_name(other) ? fmt::format("; --dtype {} takes it", name(other)) : "";
    refuse_tensor(entry.name, fmt::format("is {}; with --dtype {} it must be {} or F32{}", entry.dtype,
                                          name(dtype_), stored_name(dtype_), hint));
  }

  std::vector<float> read_values(const Entry& entry) {
    if (entry.dtype == "F32") {
      std::vector<float> values = read<float>(entry);
      for (float& value : values) value = reference::round_to(dtype_, value);
      rounded_.push_back(entry.name);
      demand_finite(entry, values);
      return values;
    }
    std::vector<float> values = reference::from_bits(dtype_, read<std::uint16_t>(entry));
    demand_finite(entry, values);
    return values;
  }

  // int32 numbers of a dimension, or none where the file has no such tensor.
  std::vector<std::int32_t> read_numbers(const std::string& tensor) {
    const Entry* entry = find(tensor);
    if (!entry) return {};
    if (entry->dtype != "I32" || entry->shape.size() != 1) {
      refuse_tensor(tensor, fmt::format("is {} of the shape {}; it must be I32 with one dimension",
                                        entry->dtype, format_shape(entry->shape)));
    }
    return read<std::int32_t>(*entry);
  }

  std::vector<float> read_f32(const std::string& tensor, const std::vector<std::int64_t>& shape) {
    const Entry* entry = find(tensor);
    if (!entry) return {};
    demand_shape(*entry, shape, "q");
    if (entry->dtype != "F32") refuse_tensor(tensor, fmt::format("is {}; it must be F32", entry->dtype));
    std::vector<float> values = read<float>(*entry);
    demand_finite(*entry, values);
    return values;
  }

  // -inf is what a row that sees no key has.
  std::vector<float> read_lse(const Entry& entry) {
    if (entry.dtype != "F32") refuse_tensor("lse", fmt::format("is {}; it must be F32", entry.dtype));
    std::vector<float> values = read<float>(entry);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i]) || values[i] == -INFINITY) continue;
      refuse_tensor("lse",
                    fmt::format("holds {} at element {}; it must hold finite numbers, or -inf for a row that "
                                "sees no key",
                                values[i], i));
    }
    return values;
  }

  std::vector<std::string> notes() const {
    if (rounded_.empty()) return {};
    return {fmt::format("{} fp32 in {}, rounded to {}",
                        fmt::format("{} {}", fmt::join(rounded_, ", "), rounded_.size() == 1 ? "is" : "are"),
                        path_, name(dtype_))};
  }

 private:
  template <class Element>
  std::vector<Element> read(const Entry& entry) {
    std::vector<Element> elements(entry.bytes / sizeof(Element));
    require(file_.read(entry, std::as_writable_bytes(std::span(elements))));
    return elements;
  }

  void demand_finite(const Entry& entry, const std::vector<float>& values) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) continue;
      const std::string range = dtype_ == Dtype::kBf16 ? "3.39e38" : "65504";
      refuse_tensor(entry.name,
                    fmt::format("holds {} at element {} in {}; values must be finite, between -{} and {}",
                                values[i], i, name(dtype_), range, range));
    }
  }

  SafetensorsFile file_;
  std::string path_;
  Dtype dtype_;
  std::vector<std::string> rounded_;
};

void demand_agreement(const std::string& path, const char* option, const std::optional<std::int64_t>& given,
                      std::int64_t in_file) {
  if (!given || *given == in_file) return;
  refuse(fmt::format("{} is {}, but {} makes it {}; leave the option out or give {}", option, *given, path,
                     in_file, in_file));
}

}  // namespace

RunInputs read_inputs(const std::filesystem::path& path, const PartialShape& given, Dtype dtype) {
  Reader reader(path, dtype);
  RunInputs inputs;
  Lengths& lengths = inputs.lengths;
  lengths = {reader.read_numbers("cu_seqlens_q"), reader.read_numbers("cu_seqlens_k"),
             reader.read_numbers("seqused_q"), reader.read_numbers("seqused_k")};
  const bool q_packed = !lengths.cu_seqlens_q.empty(), k_packed = !lengths.cu_seqlens_k.empty();

  const Entry &q = reader.demand("q"), &k = reader.demand("k"), &v = reader.demand("v"),
              &dout = reader.demand("dout");
  const auto of_q = reader.demand_extents(q, q_packed), of_k = reader.demand_extents(k, k_packed);
  const std::int64_t sequences = static_cast<std::int64_t>(q_packed   ? lengths.cu_seqlens_q.size() - 1
                                                           : k_packed ? lengths.cu_seqlens_k.size() - 1
                                                                      : of_q[0]);
  const Shape shape = inputs.shape = {.batch = sequences,
                                      .heads = of_q[2],
                                      .kv_heads = of_k[2],
                                      .seqlen_q = of_q[1],
                                      .seqlen_k = of_k[1],
                                      .head_dim = of_q[3]};
  const std::string in_file = path.string() + ": ";
  demand_lengths(
      lengths, shape,
      {in_file + "cu_seqlens_q", in_file + "cu_seqlens_k", in_file + "seqused_q", in_file + "seqused_k"});
  const auto shape_of = [&](bool packed, std::int64_t rows, std::int64_t heads) {
    std::vector<std::int64_t> extents = {rows, heads, shape.head_dim};
    if (!packed) extents.insert(extents.begin(), shape.batch);
    return extents;
  };
  reader.demand_shape(q, shape_of(q_packed, shape.seqlen_q, shape.heads), "cu_seqlens_k");
  reader.demand_shape(k, shape_of(k_packed, shape.seqlen_k, shape.kv_heads), "q");
  reader.demand_shape(v, k.shape, "k");
  reader.demand_shape(dout, q.shape, "q");
  demand_agreement(path.string(), "--batch", given.batch, shape.batch);
  demand_agreement(path.string(), "--heads", given.heads, shape.heads);
  demand_agreement(path.string(), "--kv-heads", given.kv_heads, shape.kv_heads);
  demand_agreement(path.string(), "--seqlen-q", given.seqlen_q, shape.seqlen_q);
  demand_agreement(path.string(), "--seqlen-k", given.seqlen_k, shape.seqlen_k);
  demand_agreement(path.string(), "--head-dim", given.head_dim, shape.head_dim);
  std::vector<std::int64_t> lse_shape = {shape.heads, shape.seqlen_q};
  if (!q_packed) lse_shape.insert(lse_shape.begin(), shape.batch);
  const Entry *out = reader.find("out"), *lse = reader.find("lse");
  if (out) reader.demand_shape(*out, q.shape, "q");
  if (lse) reader.demand_shape(*lse, lse_shape, "q");
  for (const Entry* entry : {&q, &k, &v, &dout, out}) {
    if (entry) reader.demand_dtype(*entry);
  }

  inputs.tensors = {reader.read_values(q),
                    reader.read_values(k),
                    reader.read_values(v),
                    reader.read_values(dout),
                    reader.read_f32("dlse", lse_shape),
                    reader.read_f32("sink", {shape.heads})};
  if (out) inputs.out = reader.read_values(*out);
  if (lse) inputs.lse = reader.read_lse(*lse);
  inputs.notes = reader.notes();
  return inputs;
}

}  // namespace flashback::program
