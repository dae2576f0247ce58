// Files for `run backward --input` that are well-formed and yet no question: each is refused with one
// sentence, exit code 2 and nothing written. And what one that is a question gives back.
#include <cmath>
#include <limits>

#include "attention/reference/inputs.h"
#include "attention/reference/rounding.h"
#include "tests/program/command.h"

namespace flashback::program {
namespace {

using Json = nlohmann::json;

class Input : public Command {
 protected:
  struct Stored {
    std::string name, dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;
  };

  // q, k, v, dout of a normal problem, in bf16.
  Input() {
    const Shape shape = {.batch = 1, .heads = 2, .kv_heads = 2, .seqlen_q = 6, .seqlen_k = 5, .head_dim = 64};
    const auto inputs = reference::make_inputs(reference::Data::kNormal, shape, Dtype::kBf16, 0.125, 3);
    tensors_ = {bf16("q", {1, 6, 2, 64}, inputs.q), bf16("k", {1, 5, 2, 64}, inputs.k),
                bf16("v", {1, 5, 2, 64}, inputs.v), bf16("dout", {1, 6, 2, 64}, inputs.dout)};
  }

  static Stored bf16(const std::string& name, std::vector<std::int64_t> shape,
                     const std::vector<float>& values) {
    return stored(name, "BF16", std::move(shape), reference::to_bits(Dtype::kBf16, values));
  }
  template <class Element>
  static Stored stored(const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape,
                       const std::vector<Element>& elements) {
    const auto bytes = std::as_bytes(std::span(elements));
    return {name, dtype, std::move(shape), {bytes.begin(), bytes.end()}};
  }

  Stored& tensor(const std::string& name) {
    for (Stored& stored : tensors_) {
      if (stored.name == name) return stored;
    }
    return tensors_.emplace_back(Stored{name, "", {}, {}});
  }

  void write() {
    std::vector<OutgoingTensor> outgoing;
    for (const Stored& stored : tensors_)
      outgoing.push_back({stored.name, stored.dtype, stored.shape, stored.bytes});
    SafetensorsWriter writer;
    ASSERT_TRUE(writer.open(directory_ / "in").ok());
    ASSERT_TRUE(writer.commit(outgoing).ok());
  }
  void expect_file_refused(const std::string& sentence, const std::string& options = "") {
    write();
    expect_refused("run backward --input in --output out " + options, sentence);
  }

  std::vector<float> read(const SafetensorsFile::Entry& entry, SafetensorsFile& file) {
    std::vector<std::byte> bytes(entry.bytes);
    EXPECT_TRUE(file.read(entry, bytes).ok());
    if (entry.dtype == "F32") {
      std::vector<float> values(bytes.size() / 4);
      std::memcpy(values.data(), bytes.data(), bytes.size());
      return values;
    }
    std::vector<std::uint16_t> bits(bytes.size() / 2);
    std::memcpy(bits.data(), bytes.data(), bytes.size());
    return reference::from_bits(Dtype::kBf16, bits);
  }

  std::vector<Stored> tensors_;
};

TEST_F(Input, MissingTensor) {
  tensors_.pop_back();
  expect_file_refused("in: has no tensor dout; it must hold q, k, v and dout, and has q, k, v");
}

TEST_F(Input, WrongShapes) {
  tensor("q").shape = {6, 2, 64};
  expect_file_refused("in: q has the shape (6, 2, 64); it must be (batch, rows, heads, channels)");
  tensor("q").shape = {1, 6, 2, 64};
  tensor("v").shape = {1, 10, 1, 64};
  expect_file_refused("in: v has the shape (1, 10, 1, 64); k makes it (1, 5, 2, 64)");
  tensor("v").shape = {1, 5, 2, 64};
  tensor("dout").shape = {2, 3, 2, 64};
  expect_file_refused("in: dout has the shape (2, 3, 2, 64); q makes it (1, 6, 2, 64)");
  tensor("dout").shape = {1, 6, 2, 64};
  tensor("k").shape = {1, 10, 2, 32};
  expect_file_refused("in: k has the shape (1, 10, 2, 32); q makes it (1, 10, 2, 64)");
  tensor("k").shape = {1, 5, 2, 64};
  tensor("lse") = stored("lse", "F32", {1, 6, 2}, std::vector<float>(12));
  expect_file_refused("in: lse has the shape (1, 6, 2); q makes it (1, 2, 6)");
}

TEST_F(Input, WrongDtypes) {
  tensor("k").dtype = "F16";
  expect_file_refused("in: k is F16; with --dtype bf16 it must be BF16 or F32; --dtype fp16 takes it");
  tensor("k").dtype = "I16";
  expect_file_refused("in: k is I16; with --dtype bf16 it must be BF16 or F32");
  tensor("k").dtype = "BF16";
  tensor("lse") = bf16("lse", {1, 2, 6}, std::vector<float>(12));
  expect_file_refused("in: lse is BF16; it must be F32");
}

TEST_F(Input, ValuesThatAreNoNumbers) {
  std::vector<float> values(6 * 2 * 64, 1.0f);
  values[70] = std::numeric_limits<float>::quiet_NaN();
  tensor("q") = bf16("q", {1, 6, 2, 64}, values);
  expect_file_refused(
      "in: q holds nan at element 70 in bf16; values must be finite, between -3.39e38 and 3.39e38");
  values[70] = 3.4e38f;  // finite in fp32, infinite once rounded to bf16
  tensor("q") = stored("q", "F32", {1, 6, 2, 64}, values);
  expect_file_refused(
      "in: q holds inf at element 70 in bf16; values must be finite, between -3.39e38 and 3.39e38");
  values[70] = 1;
  tensor("q") = bf16("q", {1, 6, 2, 64}, values);
  std::vector<float> lse(12);
  lse[1] = std::numeric_limits<float>::infinity();
  tensor("lse") = stored("lse", "F32", {1, 2, 6}, lse);
  expect_file_refused(
      "in: lse holds inf at element 1; it must hold finite numbers, or -inf for a row that sees no key");
}

TEST_F(Input, OptionsThatContradictTheFile) {
  expect_file_refused("--seqlen-q is 7, but in makes it 6; leave the option out or give 6", "--seqlen-q 7");
  expect_file_refused("--seqlen-k is 6, but in makes it 5; leave the option out or give 5", "--seqlen-k 6");
  expect_file_refused("--heads is 1, but in makes it 2; leave the option out or give 2", "--heads 1");
  expect_file_refused("--head-dim is 72, but in makes it 64; leave the option out or give 64",
                      "--head-dim 72");
  expect_file_refused("--data is zero, but the values come from --input in; leave one of the two out",
                      "--data zero");
  expect_file_refused("--seed is 1, but the values come from --input in; leave one of the two out",
                      "--seed 1");
}

TEST_F(Input, UnsupportedShapes) {
  for (const char* name : {"q", "k", "v", "dout"}) {
    Stored& stored = tensor(name);
    stored.shape[3] = 4;
    stored.shape[2] = 32;
  }
  expect_file_refused(
      "head_dim is 4; no backward kernel for sm100 takes it yet; accepted: multiples of 8 up to 128");
}

TEST_F(Input, TruncatedFileLeavesTheOldOutput) {
  write();
  const std::string whole = content(directory_ / "in");
  std::ofstream(directory_ / "in", std::ios::binary | std::ios::trunc) << whole.substr(0, whole.size() - 1);
  std::ofstream(directory_ / "out") << "old";
  const Outcome outcome = run("run backward --input in --output out");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "flashback: in: not a safetensors file: it is truncated: tensor \"dout\" ends at byte 5632 of "
            "the data, of "
            "which the file has 5631.\n");
  EXPECT_EQ(content(directory_ / "out"), "old");
}

TEST_F(Input, GradientsComeBackInTheFile) {
  write();
  const Outcome outcome = run("run backward --input in --output out --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["shape"]["seqlen_k"], 5);
  EXPECT_TRUE(report["ok"]);
  for (const char* name : {"q", "k", "v", "dout"}) {
    EXPECT_GT(report["inputs"][name]["max"], 2) << name;  // of some hundred normal numbers
    EXPECT_NEAR(report["inputs"][name]["kurtosis"].get<double>(), 3, 0.7) << name;
  }
  EXPECT_LT(report["inputs"]["lse"]["min"], report["inputs"]["lse"]["max"]);

  SafetensorsFile file;
  ASSERT_TRUE(SafetensorsFile::open(directory_ / "out", &file).ok());
  ASSERT_EQ(file.entries().size(), 5u);
  const std::vector<std::int64_t> of_q = {1, 6, 2, 64}, of_k = {1, 5, 2, 64};
  for (const auto& [name, shape] : {std::pair{"dq", of_q}, {"dk", of_k}, {"dv", of_k}, {"out", of_q}}) {
    const auto* entry = file.find(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->dtype, "BF16") << name;
    EXPECT_EQ(entry->shape, shape) << name;
    for (const float value : read(*entry, file)) ASSERT_TRUE(std::isfinite(value)) << name;
  }
  ASSERT_NE(file.find("lse"), nullptr);
  EXPECT_EQ(file.find("lse")->dtype, "F32");
  EXPECT_EQ(file.find("lse")->shape, (std::vector<std::int64_t>{1, 2, 6}));
  // Every row of P sums to 1, so dv sums to dout over the rows: an end-to-end check that no reference takes
  // part in.
  std::vector<double> sums(128);
  const auto dv = read(*file.find("dv"), file);
  for (std::size_t i = 0; i < dv.size(); ++i) sums[i % 128] += dv[i];
  std::vector<std::uint16_t> dout(6 * 128);
  std::memcpy(dout.data(), tensor("dout").bytes.data(), tensor("dout").bytes.size());
  const auto values = reference::from_bits(Dtype::kBf16, dout);
  for (std::size_t i = 0; i < values.size(); ++i) sums[i % 128] -= values[i];
  for (const double sum : sums) EXPECT_NEAR(sum, 0, 0.06);
}

// The same numbers as fp32 give the same gradients, and the rounding is said; so does a file with out and
// lse.
TEST_F(Input, Fp32IsRoundedAndForwardResultsAreUsed) {
  write();
  ASSERT_EQ(run("run backward --input in --output plain").code, 0);
  SafetensorsFile plain;
  ASSERT_TRUE(SafetensorsFile::open(directory_ / "plain", &plain).ok());

  std::vector<std::uint16_t> bits(tensor("q").bytes.size() / 2);
  std::memcpy(bits.data(), tensor("q").bytes.data(), tensor("q").bytes.size());
  std::vector<float> q = reference::from_bits(Dtype::kBf16, bits);
  for (float& value : q) value *= 1.0005f;  // well below half a unit of bf16's last place
  tensor("q") = stored("q", "F32", {1, 6, 2, 64}, q);
  tensor("out") = bf16("out", {1, 6, 2, 64}, read(*plain.find("out"), plain));
  tensor("lse") = stored("lse", "F32", {1, 2, 6}, read(*plain.find("lse"), plain));
  write();
  const Outcome outcome = run("run backward --input in --output rounded");
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_NE(outcome.err.find("flashback: q is fp32 in in, rounded to bf16.\n"), std::string::npos)
      << outcome.err;
  EXPECT_NE(
      outcome.err.find("flashback: lse comes from the file and differs from double precision by at most "),
      std::string::npos)
      << outcome.err;
  EXPECT_EQ(content(directory_ / "rounded"), content(directory_ / "plain"));

  // A wrong lse makes wrong gradients: that the file's is used can be seen.
  tensor("lse") = stored("lse", "F32", {1, 2, 6}, std::vector<float>(12, 0.0f));
  write();
  const Outcome wrong = run("run backward --input in");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.out.find("A GRADIENT IS WRONG"), std::string::npos);
}

// Packed sequences: (rows, heads, channels), lse (heads, rows), and what describes them beside the tensors.
TEST_F(Input, PackedSequencesComeFromTheFile) {
  const Shape shape = {.batch = 1, .heads = 2, .kv_heads = 1, .seqlen_q = 40, .seqlen_k = 50, .head_dim = 64};
  const auto inputs = reference::make_inputs(reference::Data::kNormal, shape, Dtype::kBf16, 0.125, 3);
  using Numbers = std::vector<std::int32_t>;
  tensors_ = {bf16("q", {40, 2, 64}, inputs.q),
              bf16("k", {50, 1, 64}, inputs.k),
              bf16("v", {50, 1, 64}, inputs.v),
              bf16("dout", {40, 2, 64}, inputs.dout),
              stored("dlse", "F32", {2, 40}, reference::make_dlse(80, 3)),
              stored("sink", "F32", {2}, reference::make_sink(2, 3)),
              stored("cu_seqlens_q", "I32", {4}, Numbers{0, 10, 10, 35}),
              stored("cu_seqlens_k", "I32", {4}, Numbers{0, 20, 30, 50})};
  write();
  const Outcome outcome = run("run backward --input in --output out --causal --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_TRUE(Json::parse(outcome.out)["ok"]);
  SafetensorsFile file;
  ASSERT_TRUE(SafetensorsFile::open(directory_ / "out", &file).ok());
  EXPECT_EQ(file.find("dq")->shape, (std::vector<std::int64_t>{40, 2, 64}));
  EXPECT_EQ(file.find("dk")->shape, (std::vector<std::int64_t>{50, 1, 64}));
  EXPECT_EQ(file.find("lse")->shape, (std::vector<std::int64_t>{2, 40}));
  EXPECT_EQ(file.find("dsink")->shape, (std::vector<std::int64_t>{2}));
  const std::vector<float> dq = read(*file.find("dq"), file);
  for (std::size_t i = 35 * 128; i < dq.size(); ++i) ASSERT_EQ(dq[i], 0) << "a row of no sequence";

  expect_file_refused(
      "lengths of sequences, --sink and --dlse come from --input in; leave one of the two out",
      "--seqused-q 5");
  tensor("cu_seqlens_k") = stored("cu_seqlens_k", "I32", {4}, Numbers{0, 20, 30, 51});
  expect_file_refused("in: cu_seqlens_k ends with 51; there are 50 rows");
  tensor("cu_seqlens_k") = stored("cu_seqlens_k", "I64", {2}, std::vector<std::int64_t>{0, 20});
  expect_file_refused("in: cu_seqlens_k is I64 of the shape (2); it must be I32 with one dimension");
  tensor("cu_seqlens_k") = stored("cu_seqlens_k", "I32", {4}, Numbers{0, 20, 30, 50});
  tensor("v") = bf16("v", {1, 50, 1, 64}, inputs.v);
  expect_file_refused("in: v has the shape (1, 50, 1, 64); k makes it (50, 1, 64)");
  tensor("k") = bf16("k", {1, 50, 1, 64}, inputs.k);
  expect_file_refused(
      "in: k has the shape (1, 50, 1, 64); it must be (rows, heads, channels), because its sequences are "
      "packed");
}

}  // namespace
}  // namespace flashback::program
