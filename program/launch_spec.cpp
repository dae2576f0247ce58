#include "program/launch_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "program/failure.h"

namespace flashback::program {
namespace {

using Json = nlohmann::json;

// An object of the file, with the words for where it stands.
class Section {
 public:
  Section(const Json& json, std::string place, std::initializer_list<const char*> keys)
      : json_(json), place_(std::move(place)) {
    if (!json.is_object()) refuse(fmt::format("{} must be an object in braces", place_));
    for (const auto& [key, value] : json.items()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      std::string accepted;
      for (const char* k : keys) accepted += fmt::format("{}{}", accepted.empty() ? "" : ", ", k);
      refuse(fmt::format("{} has the key \"{}\"; known are {}", place_, key, accepted));
    }
  }
  bool has(const char* key) const { return json_.contains(key); }
  const Json& at(const char* key) const {
    if (!has(key)) refuse(fmt::format("{} has no key \"{}\"", place_, key));
    return json_.at(key);
  }
  std::string where(const char* key) const { return fmt::format("\"{}\" of {}", key, place_); }

  std::uint64_t whole(const char* key, std::uint64_t most) const {
    return whole_of(at(key), where(key), most);
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) refuse(fmt::format("{} is {}; it must be a text", where(key), at(key).dump()));
    return at(key).get<std::string>();
  }
  std::vector<std::uint64_t> wholes(const char* key, std::size_t least, std::size_t most,
                                    std::uint64_t largest) const {
    const Json& list = at(key);
    if (!list.is_array() || list.size() < least || list.size() > most) {
      refuse(fmt::format("{} is {}; it must be a list of {} to {} whole numbers", where(key), list.dump(),
                         least, most));
    }
    std::vector<std::uint64_t> numbers;
    for (const Json& item : list) numbers.push_back(whole_of(item, "an item of " + where(key), largest));
    return numbers;
  }
  Dim3 extents(const char* key) const {
    const std::vector<std::uint64_t> n = wholes(key, 1, 3, std::numeric_limits<std::int32_t>::max());
    const auto at = [&](std::size_t i) { return i < n.size() ? static_cast<std::uint32_t>(n[i]) : 1u; };
    return {at(0), at(1), at(2)};
  }

 private:
  static std::uint64_t whole_of(const Json& value, const std::string& where, std::uint64_t most) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
      refuse(fmt::format("{} is {}; it must be a whole number from 0 to {}", where, value.dump(), most));
    }
    return value.get<std::uint64_t>();
  }

  const Json& json_;
  const std::string place_;
};

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40;  // of a dimension, or bytes of a stride

template <class Value>
std::vector<std::byte> bytes_of(Value value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <class Whole>
std::vector<std::byte> whole_bytes(const Section& section) {
  using Limits = std::numeric_limits<Whole>;
  const Json& value = section.at("value");
  const bool fits =
      value.is_number_unsigned()
          ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(Limits::max())
          : value.is_number_integer() && std::cmp_greater_equal(value.get<std::int64_t>(), Limits::min());
  if (!fits) {
    refuse(fmt::format("{} is {}; it must be a whole number from {} to {}", section.where("value"),
                       value.dump(), Limits::min(), Limits::max()));
  }
  return bytes_of(value.get<Whole>());
}

std::vector<std::byte> scalar_of(const Section& section) {
  const std::string type = section.text("scalar");
  const Json& value = section.at("value");
  if (!value.is_number())
    refuse(fmt::format("{} is {}; it must be a number", section.where("value"), value.dump()));
  if (type == "u32") return whole_bytes<std::uint32_t>(section);
  if (type == "s32") return whole_bytes<std::int32_t>(section);
  if (type == "u64") return whole_bytes<std::uint64_t>(section);
  if (type == "s64") return whole_bytes<std::int64_t>(section);
  if (type == "f32") return bytes_of(value.get<float>());
  if (type == "f64") return bytes_of(value.get<double>());
  refuse(
      fmt::format("{} is \"{}\"; it must be u32, s32, u64, s64, f32 or f64", section.where("scalar"), type));
}

// `fill`: the byte that every byte is, 0xff where nothing is said; `file`: what it begins with.
std::vector<std::byte> contents_of(const Section& section, const std::filesystem::path& folder) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 30;
  const std::uint64_t fill = section.has("fill") ? section.whole("fill", 255) : 255;
  std::vector<std::byte> contents(section.whole("buffer", kMostBytes), static_cast<std::byte>(fill));
  if (!section.has("file")) return contents;
  const std::filesystem::path path = folder / section.text("file");
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) refuse(fmt::format("{} is {}, which cannot be read", section.where("file"), path.string()));
  if (static_cast<std::uint64_t>(size) > contents.size()) {
    refuse(fmt::format("{} has {} bytes and the buffer {}", section.where("file"), size, contents.size()));
  }
  file.seekg(0);
  file.read(reinterpret_cast<char*>(contents.data()), size);
  return contents;
}

template <class Choice>
Choice choice_of(const Section& section, const char* key,
                 std::initializer_list<std::pair<const char*, Choice>> words) {
  const std::string text = section.text(key);
  std::string accepted;
  for (const auto& [word, choice] : words) {
    if (text == word) return choice;
    accepted += fmt::format("{}{}", accepted.empty() ? "" : ", ", word);
  }
  refuse(fmt::format("{} is \"{}\"; it must be one of {}", section.where(key), text, accepted));
}

TensorMapRequest map_of(const Section& section) {
  TensorMapRequest map;
  const std::vector<std::uint64_t> dims = section.wholes("dims", 1, 5, kMostElements),
                                   box = section.wholes("box", dims.size(), dims.size(),
                                                        std::numeric_limits<std::uint32_t>::max());
  const std::vector<std::uint64_t> strides =
      section.wholes("strides", dims.size() - 1, dims.size() - 1, kMostElements);
  map.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), map.dims);
  std::copy(strides.begin(), strides.end(), map.strides);
  for (std::size_t d = 0; d < box.size(); ++d) map.box[d] = static_cast<std::uint32_t>(box[d]);
  map.type = choice_of<ElementType>(
      section, "dtype",
      {{"bf16", ElementType::kBf16}, {"f16", ElementType::kF16}, {"f32", ElementType::kF32}});
  map.swizzle = choice_of<Swizzle>(
      section, "swizzle",
      {{"none", Swizzle::kNone}, {"32B", Swizzle::k32}, {"64B", Swizzle::k64}, {"128B", Swizzle::k128}});
  return map;
}

LaunchSpec::Parameter parameter_of(const Json& json, const std::string& place,
                                   const std::filesystem::path& folder) {
  const Section section(json, place,
                        {"scalar", "value", "buffer", "name", "fill", "file", "tensor_map", "dims", "strides",
                         "box", "swizzle", "dtype"});
  LaunchSpec::Parameter parameter;
  if (section.has("scalar")) {
    parameter.scalar = scalar_of(section);
  } else if (section.has("buffer")) {
    parameter.kind = LaunchSpec::Parameter::Kind::kBuffer;
    if (section.has("name")) parameter.name = section.text("name");
    parameter.contents = contents_of(section, folder);
  } else if (section.has("tensor_map")) {
    parameter.kind = LaunchSpec::Parameter::Kind::kTensorMap;
    parameter.buffer = section.text("tensor_map");
    parameter.map = map_of(section);
  } else {
    refuse(fmt::format("{} must have one of the keys \"scalar\", \"buffer\" and \"tensor_map\"", place));
  }
  return parameter;
}

}  // namespace

LaunchSpec read_launch_spec(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) refuse(fmt::format("--launch is {}, which cannot be read", path.string()));
  Json json;
  try {
    json = Json::parse(file);
  } catch (const Json::exception& error) {
    refuse(fmt::format("--launch is {}, which is not JSON: {}", path.string(), error.what()));
  }
  const Section section(json, path.filename().string(),
                        {"entry", "grid", "cluster", "block", "shared_bytes", "params"});
  LaunchSpec spec;
  spec.entry = section.text("entry");
  spec.grid = section.extents("grid");
  spec.block = section.extents("block");
  if (section.has("cluster")) spec.cluster = section.extents("cluster");
  if (section.has("shared_bytes"))
    spec.shared_bytes = static_cast<std::uint32_t>(section.whole("shared_bytes", 1 << 20));
  const Json& parameters = section.at("params");
  if (!parameters.is_array()) refuse(section.where("params") + " must be a list");
  for (const Json& parameter : parameters) {
    spec.parameters.push_back(
        parameter_of(parameter, fmt::format("params[{}]", spec.parameters.size()), path.parent_path()));
  }
  return spec;
}

Status launch(Workbench& workbench, const LaunchSpec& spec, const std::string& ptx) {
  using Kind = LaunchSpec::Parameter::Kind;
  std::map<std::string, Address> named;
  std::vector<Address> addresses;
  for (const LaunchSpec::Parameter& p : spec.parameters) {
    Address address = 0;
    if (p.kind == Kind::kBuffer) {
      if (Status status = workbench.allocate(std::max<std::size_t>(p.contents.size(), 1), &address);
          !status.ok())
        return status;
      if (Status status = workbench.upload(address, p.contents, nullptr); !status.ok()) return status;
      if (!p.name.empty()) named[p.name] = address;
    }
    addresses.push_back(address);
  }
  std::vector<std::byte> bytes;
  const auto append = [&](std::span<const std::byte> value, std::size_t alignment) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    bytes.insert(bytes.end(), value.begin(), value.end());
  };
  for (std::size_t i = 0; i < spec.parameters.size(); ++i) {
    const LaunchSpec::Parameter& p = spec.parameters[i];
    if (p.kind == Kind::kScalar) append(p.scalar, p.scalar.size());
    if (p.kind == Kind::kBuffer) append(bytes_of(addresses[i]), sizeof(Address));
    if (p.kind != Kind::kTensorMap) continue;
    const auto buffer = named.find(p.buffer);
    if (buffer == named.end()) {
      return invalid(
          fmt::format("\"tensor_map\" of params[{}] is \"{}\", which no buffer is named", i, p.buffer));
    }
    TensorMapRequest request = p.map;
    request.base = buffer->second;
    alignas(64) std::byte map[128];
    if (Status status = workbench.encode(request, map); !status.ok()) return status;
    append(map, 64);
  }
  const KernelImage image{"--ptx", workbench.arch(), ptx, {}};
  return workbench.launch(
      {&image, spec.entry.c_str(), spec.grid, spec.cluster, spec.block, spec.shared_bytes, bytes}, nullptr);
}

}  // namespace flashback::program
