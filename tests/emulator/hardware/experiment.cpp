#include "tests/emulator/hardware/experiment.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

namespace flashback::emulator::testing {
namespace {

// A device remembers images by their address, so each stays; one for each text.
const KernelImage& image_of(const std::string& ptx) {
  static std::mutex mutex;
  static std::map<std::string, KernelImage, std::less<>> all;
  const std::lock_guard lock(mutex);
  const auto [place, fresh] = all.try_emplace(ptx);
  const std::string& text = place->first;
  if (fresh) {
    const auto bytes = std::as_bytes(std::span(text.c_str(), text.size() + 1));
    place->second = {"test", Arch::kSm90, text, bytes};  // the driver assembles PTX
  }
  return place->second;
}

// Memory of the workbench, released with the object.
class Allocation {
 public:
  Allocation(Workbench& workbench, std::span<const std::byte> initial) : workbench_(workbench) {
    status_ = workbench.allocate(std::max<std::size_t>(initial.size(), 16), &address_);
    if (status_.ok() && !initial.empty()) status_ = workbench.upload(address_, initial, nullptr);
  }
  ~Allocation() {
    if (address_ != 0) workbench_.release(address_);
  }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  const Status& status() const { return status_; }
  Address address() const { return address_; }

 private:
  Workbench& workbench_;
  Status status_;
  Address address_ = 0;
};

Experiment experiment_of(const InstructionCase& test, std::string text) {
  Experiment e;
  e.text = std::move(text);
  e.modules = {module_of(test, "sm_90a", false)};
  if (!test.converged) e.modules.push_back(module_of(test, "sm_90a", true));
  e.grid.x = e.cluster.x = test.cluster;
  e.block.x = test.block;
  e.shared_bytes = test.shared_bytes;
  for (const Field& field : test.fields) {
    Buffer& buffer = e.buffers.emplace_back(Buffer{field.name, field.type, memory_of(test, field)});
    if (field.kind == Field::Kind::kOut) {
      buffer.compared = test.threads();
      buffer.units_in_last_place = field.units_in_last_place;
    }
    if (field.kind == Field::Kind::kAfter) {
      for (Buffer& before : e.buffers) {
        if (before.name == field.name && !before.initial.empty()) {
          before.compared = field.values.size();
          before.units_in_last_place = field.units_in_last_place;
        }
      }
    }
  }
  return e;
}

}  // namespace

Status run(Workbench& workbench, const Experiment& experiment, const std::string& module, Results* results) {
  std::deque<Allocation> memory;
  for (const Buffer& buffer : experiment.buffers) {
    memory.emplace_back(workbench, buffer.initial);
    if (!memory.back().status().ok()) return memory.back().status();
  }
  constexpr std::size_t kMapBytes = 128;
  const std::size_t parameter_bytes =
      kMapBytes * experiment.maps.size() + sizeof(Address) * std::max<std::size_t>(memory.size(), 1);
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> parameters(parameter_bytes / sizeof(Line) + 1);
  auto* at = reinterpret_cast<std::byte*>(parameters.data());
  for (const Map& map : experiment.maps) {
    TensorMapRequest request = map.request;
    request.base = memory[map.buffer].address();
    if (Status s = workbench.encode(request, at); !s.ok()) return s;
    at += kMapBytes;
  }
  for (const Allocation& allocation : memory) {
    const Address address = allocation.address();
    std::memcpy(at, &address, sizeof address);
    at += sizeof address;
  }

  Launch launch;
  launch.image = &image_of(module);
  launch.entry = "test";
  launch.grid = experiment.grid;
  launch.cluster = experiment.cluster;
  launch.block = experiment.block;
  launch.shared_bytes = experiment.shared_bytes;
  launch.parameters = {reinterpret_cast<const std::byte*>(parameters.data()), parameter_bytes};
  Status status = workbench.launch(launch, nullptr);
  if (status.ok()) status = workbench.wait(nullptr);
  results->clear();
  for (std::size_t i = 0; i < memory.size() && status.ok(); ++i) {
    const Buffer& buffer = experiment.buffers[i];
    results->emplace_back(buffer.compared * static_cast<std::size_t>(buffer.type.bytes));
    if (!results->back().empty()) status = workbench.download(results->back(), memory[i].address(), nullptr);
  }
  return status;
}

std::uint64_t fingerprint(const Experiment& experiment) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add_bytes = [&](const void* data, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
  };
  const auto add = [&](auto... values) { (add_bytes(&values, sizeof values), ...); };
  if (experiment.text.empty()) {
    for (const std::string& module : experiment.modules) add_bytes(module.data(), module.size());
  } else {
    add_bytes(experiment.text.data(), experiment.text.size());
  }
  for (const Dim3& d : {experiment.grid, experiment.cluster, experiment.block}) add(d.x, d.y, d.z);
  add(experiment.shared_bytes);
  for (const Map& map : experiment.maps) {
    const TensorMapRequest& r = map.request;
    add(map.buffer, r.type, r.swizzle, r.rank);
    add_bytes(r.dims, sizeof r.dims);
    add_bytes(r.strides, sizeof r.strides);
    add_bytes(r.box, sizeof r.box);
  }
  for (const Buffer& buffer : experiment.buffers) add_bytes(buffer.initial.data(), buffer.initial.size());
  return hash;
}

std::vector<Recipe> text_experiments(const std::string& source) {
  namespace fs = std::filesystem;
  std::vector<Recipe> recipes;
  for (const fs::path& path : fs::directory_iterator(source + "/tests/emulator/machine/instructions")) {
    if (path.extension() != ".ptx") continue;
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    InstructionCase test = parse_case(text.str());
    if (!test.fault.empty() || (!test.arch.empty() && test.arch != "sm_90a")) continue;
    recipes.push_back(
        {path.stem(), [test = std::move(test), text = text.str()] { return experiment_of(test, text); }});
  }
  return recipes;
}

std::vector<Recipe> all_experiments(const std::string& source) {
  std::vector<Recipe> all = text_experiments(source);
  for (auto more : {sweep_experiments(), box_experiments(), conversion_experiments(), reduction_experiments(),
                    product_experiments(), frame_experiments()})
    std::move(more.begin(), more.end(), std::back_inserter(all));
  std::sort(all.begin(), all.end(), [](const Recipe& x, const Recipe& y) { return x.name < y.name; });
  return all;
}

}  // namespace flashback::emulator::testing
