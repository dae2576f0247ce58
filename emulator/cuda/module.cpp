#include "emulator/cuda/module.h"

#include <fatbinary_section.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "emulator/cuda/error.h"
#include "emulator/cuda/fat_binary.h"
#include "emulator/cuda/process.h"
#include "emulator/machine/address_space.h"

namespace flashback::emulator::cuda {
namespace {

std::string_view ptx_of(const void* image, const Gpu& gpu) {
  std::uint32_t magic;
  std::memcpy(&magic, image, sizeof magic);
  if (magic == FATBINC_MAGIC) return ptx_of(static_cast<const __fatBinC_Wrapper_t*>(image)->data, gpu);
  if (is_fat_binary(image)) return choose_ptx(image, gpu);
  constexpr std::uint32_t kElf = 0x464c457f;
  if (magic == kElf) {
    refuse(Error::kNoBinaryForGpu, "the program loads machine code (a cubin); the emulator executes PTX");
  }
  return static_cast<const char*>(image);
}

}  // namespace

const Program& Function::program() {
  if (program_ == nullptr) {
    if (const Status status = module_.loaded().program(name_, &program_); !status.ok()) {
      program_ = nullptr;
      refuse(Error::kNotSupported, status.sentence());
    }
  }
  return *program_;
}

Module::~Module() {
  for (const auto& [name, function] : functions_) process().functions.remove(function);
  if (loaded_ != nullptr) process().memory.remove_variables(loaded_.get());
}

LoadedModule& Module::loaded() {
  const std::lock_guard lock(mutex_);
  if (loaded_ == nullptr) {
    Process& process = cuda::process();
    if (const Status status = LoadedModule::load(ptx_of(image_, process.gpu), &loaded_); !status.ok()) {
      refuse(Error::kInvalidPtx, status.sentence());
    }
    if (!runs(loaded_->target(), process.gpu)) {
      const std::string target(loaded_->target());
      loaded_.reset();
      refuse(Error::kInvalidPtx,
             fmt::format("PTX for {} does not run on an emulated {}", target, process.gpu.name));
    }
    process.memory.add_variables(loaded_.get());
  }
  return *loaded_;
}

Function* Module::function(std::string_view name) {
  LoadedModule& module = loaded();
  const std::lock_guard lock(mutex_);
  if (const auto found = functions_.find(name); found != functions_.end()) return found->second;
  const std::vector<std::string_view> names = module.entries();
  if (std::find(names.begin(), names.end(), name) == names.end()) return nullptr;
  Function* function = process().functions.make(this, std::string(name));
  functions_.emplace(name, function);
  return function;
}

std::vector<std::string_view> Module::entries() {
  return loaded().entries();
}

GlobalMemory::Range Module::variable(std::string_view name) {
  return loaded().variable(name);
}

Module* load_module(const void* image) {
  require(image != nullptr);
  auto module = std::make_unique<Module>(image);
  module->loaded();
  return process().modules.add(std::move(module));
}

Module* load_module_file(const char* path) {
  require(path != nullptr);
  std::ifstream file(path, std::ios::binary);
  require(file.good(), Error::kFileNotFound);
  const std::string image{std::istreambuf_iterator<char>(file), {}};
  require(image.size() >= sizeof(std::uint32_t), Error::kInvalidImage);
  return load_module(image.c_str());
}

}  // namespace flashback::emulator::cuda
