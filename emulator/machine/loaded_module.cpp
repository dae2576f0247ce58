#include "emulator/machine/loaded_module.h"

#include "emulator/program/decode.h"
#include "emulator/ptx/parser.h"

namespace flashback::emulator {
namespace {

std::span<const std::span<const Row>> families() {
  static const std::vector<std::span<const Row>> all = {
      integer_rows(), float_rows(),       half_rows(),
      extreme_rows(), approximate_rows(), comparison_rows(),
      convert_rows(), move_rows(),        memory_rows(),
      atomic_rows(),  peer_store_rows(),  launch_control_rows(),
      control_rows(), provided_rows(),    convergence_rows(),
      barrier_rows(), copy_rows(),        tensor_memory_rows(),
      matrix_rows(),  warpgroup_rows(),   matrix_transfer_rows(),
  };
  return all;
}

}  // namespace

Status LoadedModule::load(std::string_view ptx, std::unique_ptr<LoadedModule>* module) {
  ptx::ParseResult parsed = ptx::parse(ptx);
  if (parsed.module == nullptr) return invalid(parsed.error);
  std::string error;
  auto memory = std::make_unique<ModuleMemory>(*parsed.module, &error);
  if (!error.empty()) return unsupported(error);
  module->reset(new LoadedModule);
  (*module)->syntax_ = std::move(parsed.module);
  (*module)->memory_ = std::move(memory);
  return {};
}

std::vector<std::string_view> LoadedModule::entries() const {
  std::vector<std::string_view> names;
  for (const ptx::Entry& entry : syntax_->entries) names.push_back(entry.name);
  return names;
}

Status LoadedModule::program(std::string_view entry, const Program** program) {
  const std::lock_guard lock(mutex_);
  if (const auto found = programs_.find(entry); found != programs_.end()) {
    *program = found->second.get();
    return {};
  }
  DecodeResult decoded = decode(*syntax_, *memory_, entry, families());
  if (decoded.program == nullptr) return unsupported(decoded.error);
  *program = programs_.emplace(entry, std::move(decoded.program)).first->second.get();
  return {};
}

}  // namespace flashback::emulator
