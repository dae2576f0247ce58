// What is written is read back bit for bit; every hostile file is refused with one sentence, and no write is
// ever half done.
#include "program/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

namespace flashback::program {
namespace {

namespace fs = std::filesystem;

class Safetensors : public ::testing::Test {
 protected:
  Safetensors() {
    std::string name = (fs::temp_directory_path() / "safetensors_test.XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~Safetensors() override { fs::remove_all(directory_); }

  fs::path path(const std::string& name) const { return directory_ / name; }

  static std::string bytes_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static void put(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }
  static std::string file_of(const std::string& header, std::size_t data_bytes) {
    std::string bytes(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    return bytes + header + std::string(data_bytes, '\1');
  }
  // The sentence with which the file of this header is refused, without its path; empty when it is accepted.
  std::string refusal(const std::string& header, std::size_t data_bytes) {
    put(path("hostile"), file_of(header, data_bytes));
    return refusal_of_file();
  }
  std::string refusal_of_file() {
    SafetensorsFile file;
    const Status status = SafetensorsFile::open(path("hostile"), &file);
    EXPECT_TRUE(status.ok() || status.code() == Code::kInvalid);
    EXPECT_TRUE(status.ok() || file.entries().empty());
    const std::string prefix = path("hostile").string() + ": not a safetensors file: ";
    if (status.ok()) return "";
    EXPECT_EQ(status.sentence().substr(0, prefix.size()), prefix);
    EXPECT_EQ(status.sentence().find('\n'), std::string::npos);
    return status.sentence().substr(prefix.size());
  }

  // Two tensors of 24 and 8 bytes.
  void write_small(const fs::path& file) {
    static const std::vector<std::uint16_t> q = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const std::vector<float> lse = {-1.5f, 2.25f};
    SafetensorsWriter writer;
    ASSERT_TRUE(writer.open(file).ok());
    const OutgoingTensor tensors[] = {{"q", "BF16", {1, 3, 2, 2}, std::as_bytes(std::span(q))},
                                      {"lse", "F32", {1, 2, 1}, std::as_bytes(std::span(lse))}};
    const Status status = writer.commit(tensors);
    ASSERT_TRUE(status.ok()) << status.sentence();
  }

  fs::path directory_;
};

TEST_F(Safetensors, RoundTrip) {
  write_small(path("small"));
  SafetensorsFile file;
  const Status status = SafetensorsFile::open(path("small"), &file);
  ASSERT_TRUE(status.ok()) << status.sentence();
  ASSERT_EQ(file.entries().size(), 2u);
  const auto* q = file.find("q");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->dtype, "BF16");
  EXPECT_EQ(q->shape, (std::vector<std::int64_t>{1, 3, 2, 2}));
  std::vector<std::uint16_t> values(12);
  ASSERT_TRUE(file.read(*q, std::as_writable_bytes(std::span(values))).ok());
  std::vector<std::uint16_t> expected(12);
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_EQ(values, expected);
  std::vector<float> lse(2);
  ASSERT_TRUE(file.read(*file.find("lse"), std::as_writable_bytes(std::span(lse))).ok());
  EXPECT_EQ(lse, (std::vector<float>{-1.5f, 2.25f}));
  EXPECT_EQ(file.find("k"), nullptr);
}

// The bytes themselves, so that a mistake made in both the writer and the reader is seen.
TEST_F(Safetensors, BytesAreTheFormats) {
  write_small(path("small"));
  const std::string header = R"({"q":{"dtype":"BF16","shape":[1,3,2,2],"data_offsets":[0,24]},)"
                             R"("lse":{"dtype":"F32","shape":[1,2,1],"data_offsets":[24,32]}})";
  const std::size_t padded = (header.size() + 7) / 8 * 8;
  const std::string bytes = bytes_of(path("small"));
  ASSERT_EQ(bytes.size(), 8 + padded + 32);
  EXPECT_EQ(bytes[0], char(padded));
  EXPECT_EQ(bytes.substr(1, 7), std::string(7, '\0'));
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ(bytes.substr(8 + padded, 4), std::string("\1\0\2\0", 4));
}

TEST_F(Safetensors, AcceptsMetadataEmptyTensorsAndAnyOrder) {
  EXPECT_EQ(refusal(R"({"__metadata__":{"a":"b"},"b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]},)"
                    R"("e":{"dtype":"F32","shape":[0,5],"data_offsets":[4,4]},)"
                    R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}  )",
                    7),
            "");
  EXPECT_EQ(refusal("{}", 0), "");
}

TEST_F(Safetensors, TruncationAtEveryByteIsRefused) {
  write_small(path("small"));
  const std::string bytes = bytes_of(path("small"));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    put(path("hostile"), bytes.substr(0, length));
    EXPECT_NE(refusal_of_file(), "") << "cut to " << length << " of " << bytes.size() << " bytes";
  }
  put(path("hostile"), bytes + "x");
  EXPECT_EQ(refusal_of_file(), "its tensors end at byte 32 of the data, of which the file has 33");
}

// A flipped bit is refused or still describes tensors that lie within the file: reading them all must
// succeed.
TEST_F(Safetensors, BitFlipsInTheHeaderAreHarmless) {
  write_small(path("small"));
  const std::string bytes = bytes_of(path("small"));
  int refused = 0, accepted = 0;
  for (std::size_t at = 0; at + 32 < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = char(flipped[at] ^ (1 << bit));
      put(path("hostile"), flipped);
      if (!refusal_of_file().empty()) {
        ++refused;
        continue;
      }
      ++accepted;
      SafetensorsFile file;
      ASSERT_TRUE(SafetensorsFile::open(path("hostile"), &file).ok());
      for (const auto& entry : file.entries()) {
        ASSERT_LE(entry.bytes, 32u);
        std::vector<std::byte> data(entry.bytes);
        EXPECT_TRUE(file.read(entry, data).ok());
      }
    }
  }
  EXPECT_GT(refused,
            accepted);  // only names, one dtype for another of its size and white space survive a flip
  EXPECT_GT(accepted, 0);
}

TEST_F(Safetensors, HostileHeaders) {
  struct Case {
    const char* header;
    std::size_t data_bytes;
    const char* sentence;
  };
  const Case cases[] = {
      {R"({"a":)", 0, "its header is not valid JSON (at byte 6 of 5)"},
      {R"([1])", 0, "its header is not a JSON object"},
      {R"({"a":1e999})", 0, "its header has a number that is too large for 64 bits of floating point"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       1, R"(its header has the key "a" twice)"},
      {R"({"__metadata__":{"a":1}})", 0, "its __metadata__ is not an object of strings"},
      {R"({"a":{"dtype":"U8","shape":[1]}})", 1,
       R"(tensor "a" is not an object of exactly dtype, shape and data_offsets)"},
      {R"({"a":{"dtype":"F17","shape":[1],"data_offsets":[0,1]}})", 1,
       R"(tensor "a" has the unknown dtype "F17")"},
      {R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,1]}})", 1,
       R"(tensor "a" has a dtype that is not a string)"},
      {R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1,
       R"(tensor "a" has a shape that is not a list of whole numbers >= 0)"},
      {R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1,
       R"(tensor "a" has a shape that is not a list of whole numbers >= 0)"},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1]}})", 1,
       R"(tensor "a" has a shape that is not a list of whole numbers >= 0)"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1,
       R"(tensor "a" has data_offsets that are not two whole numbers >= 0)"},
      // 2^32 * 2^32 would wrap to 0.
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
       R"(tensor "a" has the shape (4294967296, 4294967296), more bytes than 64 bits count)"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
       R"(tensor "a" has data_offsets [0, 4], but F32 of shape (2) takes 8 bytes)"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[1,0]}})", 1,
       R"(tensor "a" has data_offsets [1, 0], but U8 of shape (0) takes 0 bytes)"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, R"(tensor "b" begins at byte 1 of the data, inside the tensor before it, which ends at 2)"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       3,
       R"(tensor "b" begins at byte 2 of the data, not at the end of the tensor before it, which ends at 1)"},
      {R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", 8,
       R"(it is truncated: tensor "a" ends at byte 9 of the data, of which the file has 8)"},
      {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 9,
       "its tensors end at byte 8 of the data, of which the file has 9"},
      {R"({"a\n\u0007":{"dtype":"?","shape":[8],"data_offsets":[0,8]}})", 8,
       R"(tensor "a\n\u0007" has the unknown dtype "?")"},
  };
  for (const Case& c : cases) EXPECT_EQ(refusal(c.header, c.data_bytes), c.sentence) << c.header;
}

TEST_F(Safetensors, HostileLengths) {
  put(path("hostile"), std::string(8, '\xff') + "{}");
  EXPECT_EQ(refusal_of_file(),
            "its header length is 18446744073709551615 bytes; the format allows 100000000");
  put(path("hostile"), std::string("\3\0\0\0\0\0\0\0{}", 10));
  EXPECT_EQ(refusal_of_file(), "it is truncated: a header of 3 bytes in a file of 10");
  put(path("hostile"), "short");
  EXPECT_EQ(refusal_of_file(), "it is truncated: 5 bytes, where the header length alone takes 8");
  put(path("hostile"), file_of(std::string(100'000, '['), 0));
  EXPECT_EQ(refusal_of_file(), "its header is not valid JSON (at byte 100001 of 100000)");
}

TEST_F(Safetensors, PathsThatAreNoFiles) {
  SafetensorsFile file;
  EXPECT_EQ(SafetensorsFile::open(path("none"), &file).sentence(),
            path("none").string() + ": No such file or directory");
  EXPECT_EQ(SafetensorsFile::open(directory_, &file).sentence(),
            directory_.string() + ": is not a regular file");
  SafetensorsWriter writer;
  EXPECT_EQ(writer.open(path("none/file")).sentence(),
            path("none/file").string() + ": cannot be written (No such file or directory)");
  EXPECT_EQ(writer.open(directory_).sentence(),
            directory_.string() + ": is a directory, not a file to write");
}

TEST_F(Safetensors, AnUncommittedWriteLeavesNothing) {
  put(path("kept"), "old");
  {
    SafetensorsWriter writer;
    ASSERT_TRUE(writer.open(path("kept")).ok());
  }
  EXPECT_EQ(bytes_of(path("kept")), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1);
  write_small(path("kept"));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1);
  SafetensorsFile file;
  EXPECT_TRUE(SafetensorsFile::open(path("kept"), &file).ok());
}

}  // namespace
}  // namespace flashback::program
