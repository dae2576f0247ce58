#include "attention/reference/inputs.h"

#include <array>
#include <cmath>
#include <random>
#include <utility>

#include "attention/reference/rounding.h"

namespace flashback::reference {
namespace {

constexpr std::array<std::pair<Data, std::string_view>, 6> kNames = {{{Data::kNormal, "normal"},
                                                                      {Data::kLow, "low"},
                                                                      {Data::kHigh, "high"},
                                                                      {Data::kEqual, "equal"},
                                                                      {Data::kZero, "zero"},
                                                                      {Data::kHeavy, "heavy"}}};

// The streams of random numbers.
enum : std::uint32_t { kQ, kK, kV, kDout, kDlse, kSink };

// Twelve uniform numbers less six have mean 0 and variance 1 and are near enough to normal; unlike the
// distributions of the standard library, whose values it leaves open, they are the same everywhere.
class Normal {
 public:
  Normal(std::uint64_t seed, std::uint32_t tensor) {
    std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), tensor};
    engine_.seed(sequence);
  }

  double operator()() {
    std::uint64_t sum = 0;
    for (int draw = 0; draw < 3; ++draw) {
      const std::uint64_t bits = engine_();
      for (int part = 0; part < 4; ++part) sum += bits >> 16 * part & 0xffff;
    }
    return (static_cast<double>(sum) + 6) * 0x1p-16 - 6;
  }

 private:
  std::mt19937_64 engine_;
};

// Row `row` and channel `channel` of a tensor, by a function of both: heads and batches are further rows.
template <typename Value>
std::vector<float> fill(std::int64_t rows, std::int64_t channels, Dtype dtype, Value value) {
  std::vector<float> tensor(rows * channels);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      tensor[row * channels + channel] = round_to(dtype, static_cast<float>(value(row, channel)));
    }
  }
  return tensor;
}

}  // namespace

std::string_view name(Data data) {
  for (const auto& [kind, word] : kNames) {
    if (kind == data) return word;
  }
  return "?";
}

std::optional<Data> data_named(std::string_view name) {
  for (const auto& [kind, word] : kNames) {
    if (word == name) return kind;
  }
  return std::nullopt;
}

Inputs make_inputs(Data data, const Shape& shape, Dtype dtype, double scale, std::uint64_t seed) {
  const std::int64_t channels = shape.head_dim;
  const std::int64_t q_rows = shape.batch * shape.seqlen_q * shape.heads;
  const std::int64_t k_rows = shape.batch * shape.seqlen_k * shape.kv_heads;
  auto zeros = [&](std::int64_t rows) { return std::vector<float>(rows * channels); };
  auto normal = [&](std::uint32_t tensor, std::int64_t rows) {
    Normal draw(seed, tensor);
    return fill(rows, channels, dtype, [&](std::int64_t, std::int64_t) { return draw(); });
  };
  // Channels that differ from tensor to tensor: where q and k were large together, the softmax would pick one
  // key only.
  auto heavy = [&](std::uint32_t tensor, std::int64_t rows) {
    Normal draw(seed, tensor);
    const std::int64_t first = (5 + 8 * tensor) % channels, second = (38 + 8 * tensor) % channels;
    return fill(rows, channels, dtype, [&](std::int64_t, std::int64_t channel) {
      return draw() * (channel == first || channel == second ? 100 : 1);
    });
  };
  auto one_row = [&](std::uint32_t tensor, std::int64_t rows) {
    const std::vector<float> row = normal(tensor, 1);
    return fill(rows, channels, dtype, [&](std::int64_t, std::int64_t channel) { return row[channel]; });
  };
  // Rows near one vector u of entries +-amplitude, so that scale * q.k is near `target`; the noise spreads it
  // by about 1.
  auto aligned = [&](std::uint32_t tensor, std::int64_t rows, double target) {
    const double amplitude = std::sqrt(std::abs(target / scale) / static_cast<double>(channels));
    const double noise = std::sqrt(static_cast<double>(channels) / 2) / std::abs(target);
    const double sign = tensor == kK && target * scale < 0 ? -1 : 1;
    Normal draw(seed, tensor);
    return fill(rows, channels, dtype, [&](std::int64_t, std::int64_t channel) {
      const double entry = channel * 5 % 7 < 3 ? 1 : -1;
      return sign * amplitude * (entry + noise * draw());
    });
  };

  switch (data) {
    case Data::kZero:
      return {zeros(q_rows), zeros(k_rows), zeros(k_rows), zeros(q_rows), {}, {}};
    case Data::kHeavy:
      return {heavy(kQ, q_rows), heavy(kK, k_rows), heavy(kV, k_rows), heavy(kDout, q_rows), {}, {}};
    case Data::kEqual:
      return {one_row(kQ, q_rows), one_row(kK, k_rows), normal(kV, k_rows), normal(kDout, q_rows), {}, {}};
    case Data::kLow:
      return {aligned(kQ, q_rows, -100),
              aligned(kK, k_rows, -100),
              normal(kV, k_rows),
              normal(kDout, q_rows),
              {},
              {}};
    case Data::kHigh:
      return {aligned(kQ, q_rows, 100),
              aligned(kK, k_rows, 100),
              normal(kV, k_rows),
              normal(kDout, q_rows),
              {},
              {}};
    case Data::kNormal:
      break;
  }
  return {normal(kQ, q_rows), normal(kK, k_rows), normal(kV, k_rows), normal(kDout, q_rows), {}, {}};
}

namespace {

std::vector<float> normal_numbers(std::uint32_t stream, std::int64_t size, std::uint64_t seed) {
  Normal draw(seed, stream);
  std::vector<float> numbers(size);
  for (float& number : numbers) number = static_cast<float>(draw());
  return numbers;
}

}  // namespace

std::vector<float> make_dlse(std::int64_t size, std::uint64_t seed) {
  return normal_numbers(kDlse, size, seed);
}
std::vector<float> make_sink(std::int64_t heads, std::uint64_t seed) {
  return normal_numbers(kSink, heads, seed);
}

}  // namespace flashback::reference
