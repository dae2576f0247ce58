#include "program/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace flashback::program {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

struct Dtype {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr Dtype kDtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
                             {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                             {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};

// A name from a file, safe to print: escaped, quoted and not longer than a line.
std::string quoted(const std::string& name) {
  const std::string text = Json(name).dump(-1, ' ', true);
  return text.size() <= 66 ? text : text.substr(0, 62) + "...\"";
}

std::string last_error() {
  return std::strerror(errno);
}

// Collects the first object key that stands twice in the same object.
class DuplicateKeys {
 public:
  bool operator()(int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) {
      open_.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      open_.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!open_.back().insert(key).second && first_.empty()) first_ = quoted(key);
    }
    return true;
  }
  const std::string& first() const { return first_; }

 private:
  std::vector<std::set<std::string>> open_;
  std::string first_;
};

Status parse_header(const std::string& text, Json* header) {
  DuplicateKeys duplicates;
  try {
    *header = Json::parse(text, std::ref(duplicates));
  } catch (const Json::parse_error& error) {
    return invalid(fmt::format("its header is not valid JSON (at byte {} of {})", error.byte, text.size()));
  } catch (const Json::out_of_range&) {
    return invalid("its header has a number that is too large for 64 bits of floating point");
  }
  if (!duplicates.first().empty()) return invalid("its header has the key " + duplicates.first() + " twice");
  if (!header->is_object()) return invalid("its header is not a JSON object");
  return {};
}

Status check_metadata(const Json& metadata) {
  const bool strings =
      metadata.is_object() &&
      std::all_of(metadata.begin(), metadata.end(), [](const Json& value) { return value.is_string(); });
  return strings ? Status() : invalid("its __metadata__ is not an object of strings");
}

bool whole_numbers(const Json& array) {
  return array.is_array() && std::all_of(array.begin(), array.end(), [](const Json& value) {
           return value.is_number_unsigned() &&
                  value.get<std::uint64_t>() <= std::uint64_t(std::numeric_limits<std::int64_t>::max());
         });
}

// `offset` of the entry is relative to the data, as the file has it.
Status parse_entry(const std::string& name, const Json& json, SafetensorsFile::Entry* entry) {
  const std::string who = "tensor " + quoted(name);
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    return invalid(who + " is not an object of exactly dtype, shape and data_offsets");
  }
  const Json& dtype = json["dtype"];
  const Json& shape = json["shape"];
  const Json& offsets = json["data_offsets"];
  if (!dtype.is_string()) return invalid(who + " has a dtype that is not a string");
  const auto* known = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                   [&](const Dtype& d) { return d.name == dtype.get<std::string>(); });
  if (known == std::end(kDtypes)) {
    return invalid(fmt::format("{} has the unknown dtype {}", who, quoted(dtype.get<std::string>())));
  }
  if (!whole_numbers(shape)) return invalid(who + " has a shape that is not a list of whole numbers >= 0");
  if (!whole_numbers(offsets) || offsets.size() != 2) {
    return invalid(who + " has data_offsets that are not two whole numbers >= 0");
  }

  *entry = {name, std::string(known->name), shape.get<std::vector<std::int64_t>>(), 0, known->bytes};
  for (const std::int64_t extent : entry->shape) {
    if (__builtin_mul_overflow(entry->bytes, std::uint64_t(extent), &entry->bytes)) {
      return invalid(
          fmt::format("{} has the shape {}, more bytes than 64 bits count", who, format_shape(entry->shape)));
    }
  }
  const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
  if (begin > end || end - begin != entry->bytes) {
    return invalid(fmt::format("{} has data_offsets [{}, {}], but {} of shape {} takes {} bytes", who, begin,
                               end, entry->dtype, format_shape(entry->shape), entry->bytes));
  }
  entry->offset = begin;
  return {};
}

// Sorts by offset; the data must follow one another from 0 to `data_bytes`.
Status check_layout(std::vector<SafetensorsFile::Entry>* entries, std::uint64_t data_bytes) {
  std::stable_sort(entries->begin(), entries->end(), [](const auto& a, const auto& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  });
  std::uint64_t end = 0;
  for (const SafetensorsFile::Entry& entry : *entries) {
    if (entry.offset != end) {
      return invalid(fmt::format(
          "tensor {} begins at byte {} of the data, {} the tensor before it, which ends at {}",
          quoted(entry.name), entry.offset, entry.offset < end ? "inside" : "not at the end of", end));
    }
    if (entry.bytes > data_bytes - end) {
      return invalid(
          fmt::format("it is truncated: tensor {} ends at byte {} of the data, of which the file has {}",
                      quoted(entry.name), end + entry.bytes, data_bytes));
    }
    end += entry.bytes;
  }
  if (end != data_bytes) {
    return invalid(
        fmt::format("its tensors end at byte {} of the data, of which the file has {}", end, data_bytes));
  }
  return {};
}

Status read_entries(std::ifstream& stream, std::uint64_t file_bytes,
                    std::vector<SafetensorsFile::Entry>* entries) {
  if (file_bytes < kLengthBytes) {
    return invalid(
        fmt::format("it is truncated: {} bytes, where the header length alone takes 8", file_bytes));
  }
  unsigned char length_bytes[kLengthBytes];
  stream.read(reinterpret_cast<char*>(length_bytes), kLengthBytes);
  std::uint64_t length = 0;
  for (int i = kLengthBytes - 1; i >= 0; --i) length = length << 8 | length_bytes[i];
  if (length > kMaxHeaderBytes) {
    return invalid(
        fmt::format("its header length is {} bytes; the format allows {}", length, kMaxHeaderBytes));
  }
  if (length > file_bytes - kLengthBytes) {
    return invalid(fmt::format("it is truncated: a header of {} bytes in a file of {}", length, file_bytes));
  }
  std::string text(length, '\0');
  stream.read(text.data(), std::streamsize(length));
  if (!stream) return invalid("its header cannot be read");

  Json header;
  if (Status status = parse_header(text, &header); !status.ok()) return status;
  for (const auto& [name, value] : header.items()) {
    SafetensorsFile::Entry entry;
    const Status status = name == "__metadata__" ? check_metadata(value) : parse_entry(name, value, &entry);
    if (!status.ok()) return status;
    if (name != "__metadata__") entries->push_back(std::move(entry));
  }
  if (Status status = check_layout(entries, file_bytes - kLengthBytes - length); !status.ok()) return status;
  for (SafetensorsFile::Entry& entry : *entries) entry.offset += kLengthBytes + length;
  return {};
}

}  // namespace

std::string format_shape(std::span<const std::int64_t> shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

Status SafetensorsFile::open(const std::filesystem::path& path, SafetensorsFile* file) {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(path, error);
  if (!regular && error) return invalid(fmt::format("{}: {}", path.string(), error.message()));
  if (!regular) return invalid(path.string() + ": is not a regular file");
  SafetensorsFile opened;
  opened.path_ = path;
  const std::uint64_t bytes = std::filesystem::file_size(path, error);
  opened.stream_.open(path, std::ios::binary);
  if (error || !opened.stream_)
    return invalid(fmt::format("{}: cannot be opened ({})", path.string(), last_error()));
  if (Status status = read_entries(opened.stream_, bytes, &opened.entries_); !status.ok()) {
    return invalid(fmt::format("{}: not a safetensors file: {}", path.string(), status.sentence()));
  }
  *file = std::move(opened);
  return {};
}

const SafetensorsFile::Entry* SafetensorsFile::find(std::string_view name) const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

Status SafetensorsFile::read(const Entry& entry, std::span<std::byte> data) {
  if (data.size() != entry.bytes) {
    return internal_failure(
        fmt::format("tensor {} has {} bytes, asked for {}", quoted(entry.name), entry.bytes, data.size()));
  }
  stream_.clear();
  stream_.seekg(std::streamoff(entry.offset));
  stream_.read(reinterpret_cast<char*>(data.data()), std::streamsize(data.size()));
  if (!stream_)
    return invalid(fmt::format("{}: tensor {} cannot be read", path_.string(), quoted(entry.name)));
  return {};
}

SafetensorsWriter::~SafetensorsWriter() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

Status SafetensorsWriter::open(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return invalid(path.string() + ": is a directory, not a file to write");
  std::string name = path.string() + ".XXXXXX";
  descriptor_ = mkstemp(name.data());
  if (descriptor_ < 0) return invalid(fmt::format("{}: cannot be written ({})", path.string(), last_error()));
  path_ = path;
  temporary_ = name;
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor_, 0666 & ~mask);  // mkstemp makes it private; what is written shall be an ordinary file
  return {};
}

Status SafetensorsWriter::commit(std::span<const OutgoingTensor> tensors) {
  Json header = Json::object();
  std::uint64_t offset = 0;
  for (const OutgoingTensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.data.size()}}};
    offset += tensor.data.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data begin 8-byte aligned
  std::string prefix(kLengthBytes, '\0');
  for (std::uint64_t i = 0; i < kLengthBytes; ++i) prefix[i] = char(text.size() >> (8 * i));

  const auto write_all = [this](const void* data, std::size_t bytes) {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = write(descriptor_, from, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      from += written;
      bytes -= std::size_t(written);
    }
    return true;
  };
  bool written = write_all(prefix.data(), prefix.size()) && write_all(text.data(), text.size());
  for (const OutgoingTensor& tensor : tensors)
    written = written && write_all(tensor.data.data(), tensor.data.size());
  if (!written || fsync(descriptor_) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return invalid(fmt::format("{}: cannot be written ({})", path_.string(), last_error()));
  }
  close(descriptor_);
  descriptor_ = -1;
  return {};
}

}  // namespace flashback::program
