#include "emulator/workbench.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

#include "device/emulator.h"
#include "device/ptx_text.h"
#include "emulator/machine/guarded_pages.h"
#include "emulator/machine/loaded_module.h"
#include "emulator/machine/units/tensor_map.h"

namespace flashback::emulator {
namespace {

// Allocations, each on pages of its own with a page that cannot be touched before and after it.
class Allocations final : public GlobalMemory {
 public:
  Allocations() = default;
  ~Allocations() override {
    while (!ranges_.empty()) release(ranges_.begin()->first);
  }
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

  // 0 when the host has no memory for it.
  Address allocate(std::size_t bytes) {
    const std::byte* memory = map_guarded_pages(bytes);
    if (memory == nullptr) return 0;
    const auto address = reinterpret_cast<Address>(memory);
    ranges_.emplace(address, Range{address, address + bytes});
    return address;
  }
  void release(Address address) {
    const auto found = ranges_.find(address);
    if (found == ranges_.end()) return;
    unmap_guarded_pages(reinterpret_cast<std::byte*>(address), found->second.bytes());
    ranges_.erase(found);
  }
  Range range_of(Address address) const override {
    auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return {};
    const Range range = std::prev(after)->second;
    return address < range.end ? range : Range{};
  }

 private:
  std::map<Address, Range> ranges_;
};

class EmulatorWorkbench final : public Workbench {
 public:
  explicit EmulatorWorkbench(const MachineOptions& options) : arch_(options.arch), machine_(options) {}

  Arch arch() const override { return arch_; }
  int multiprocessors() const override { return usual_multiprocessors(arch_); }
  Status encode(const TensorMapRequest& request, void* map) override {
    return encode_tensor_map(request, map);
  }

  Status launch(const Launch& launch, Stream) override {
    const std::lock_guard one(mutex_);
    if (launch.image == nullptr || launch.entry == nullptr)
      return invalid("a launch names neither image nor entry");
    if (launch.image->arch != arch_) {
      return invalid(fmt::format("{} is compiled for another architecture than the emulator was opened for",
                                 launch.image->name));
    }
    LoadedModule* module = nullptr;
    if (Status loaded = load(launch.image->ptx, &module); !loaded.ok()) return loaded;
    return machine_.launch(*module, launch, allocations_);
  }

  Status fill(Address address, std::uint32_t value, std::size_t words, Stream) override {
    const std::lock_guard one(mutex_);
    if (Status held = check(address, words * sizeof value, "fill"); !held.ok()) return held;
    if (address % sizeof value != 0)
      return invalid(fmt::format("fill from {:#x}, which is not a multiple of 4", address));
    std::fill_n(reinterpret_cast<std::uint32_t*>(address), words, value);
    return {};
  }

  Status allocate(std::size_t bytes, Address* address) override {
    const std::lock_guard one(mutex_);
    if (bytes == 0) return invalid("an allocation of 0 bytes");
    *address = allocations_.allocate(bytes);
    if (*address == 0)
      return device_failure(fmt::format("the host has no {} bytes for an allocation", bytes));
    return {};
  }
  void release(Address address) override {
    const std::lock_guard one(mutex_);
    allocations_.release(address);
  }

  Status upload(Address to, std::span<const std::byte> from, Stream) override {
    const std::lock_guard one(mutex_);
    if (Status held = check(to, from.size(), "upload"); !held.ok()) return held;
    std::memcpy(reinterpret_cast<void*>(to), from.data(), from.size());
    return {};
  }
  Status download(std::span<std::byte> to, Address from, Stream) override {
    const std::lock_guard one(mutex_);
    if (Status held = check(from, to.size(), "download"); !held.ok()) return held;
    std::memcpy(to.data(), reinterpret_cast<const void*>(from), to.size());
    return {};
  }
  Status wait(Stream) override { return {}; }

  Status mark(int which, Stream) override {
    if (which != 0 && which != 1) return invalid(fmt::format("mark {}; there are 0 and 1", which));
    marks_[which] = std::chrono::steady_clock::now();
    return {};
  }
  Status elapsed(double* milliseconds) override {
    *milliseconds = std::chrono::duration<double, std::milli>(marks_[1] - marks_[0]).count();
    return {};
  }
  Status executed(Executed* executed) override {
    const std::lock_guard one(mutex_);
    const Statistics statistics = machine_.statistics();
    *executed = {statistics.warp_instructions, statistics.matrix_instructions, statistics.ctas};
    return {};
  }

 private:
  struct Loaded {
    std::string ptx;  // as it lay in the image: another may come to lie there
    std::unique_ptr<LoadedModule> module;
  };

  // Images are loaded at their first launch.
  Status load(std::string_view ptx, LoadedModule** module) {
    Loaded& loaded = modules_[ptx.data()];
    if (loaded.module == nullptr || loaded.ptx != ptx) {
      std::string text;
      if (Status status = ptx_text(ptx, &text); !status.ok()) return status;
      if (Status status = LoadedModule::load(text, &loaded.module); !status.ok()) return status;
      loaded.ptx = ptx;
    }
    *module = loaded.module.get();
    return {};
  }

  Status check(Address address, std::size_t bytes, const char* what) const {
    if (bytes == 0 || allocations_.contains(address, bytes)) return {};
    return invalid(fmt::format("{} of {} bytes at {:#x}; no allocation holds them", what, bytes, address));
  }

  const Arch arch_;
  std::mutex mutex_;  // any thread may call: one operation after the other
  Allocations allocations_;
  Machine machine_;
  std::map<const char*, Loaded> modules_;  // by where their PTX lies
  std::chrono::steady_clock::time_point marks_[2];
};

}  // namespace

std::unique_ptr<Workbench> make_workbench(const MachineOptions& options) {
  return std::make_unique<EmulatorWorkbench>(options);
}

}  // namespace flashback::emulator
