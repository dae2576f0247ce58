#include "tests/emulator/hardware/full_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

#include "tests/emulator/hardware/experiment.h"

namespace flashback::emulator::testing {
namespace {

constexpr std::uint32_t kThreads = 1024;

// Thread i of the grid: the function of the word start + i.
std::string module_of(const std::string& function) {
  return fmt::format(
      ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry test(.param .align 64 .b8 p[16])\n{{\n"
      ".reg .b64 %start, %results;\n.reg .b32 %i, %cta, %x, %y;\n"
      "ld.param.u64 %start, [p];\nld.param.u64 %results, [p+8];\nld.global.u32 %x, [%start];\n"
      "mov.u32 %i, %tid.x;\nmov.u32 %cta, %ctaid.x;\nmad.lo.u32 %i, %cta, {}, %i;\nadd.u32 %x, %x, %i;\n"
      "mad.wide.u32 %results, %i, 4, %results;\n{} %y, %x;\nst.global.b32 [%results], %y;\nret;\n}}\n",
      kThreads, function);
}

Experiment block_of(const std::string& function, std::uint32_t block) {
  Experiment e;
  e.name = function;
  e.modules = {module_of(function)};
  e.grid.x = kSweepBlockWords / kThreads;
  e.block.x = kThreads;
  const std::uint32_t start = block * kSweepBlockWords;
  e.buffers.push_back({"start", {"u32", 4}, std::vector<std::byte>(4)});
  std::memcpy(e.buffers[0].initial.data(), &start, 4);
  e.buffers.push_back({"results", {"u32", 4}, std::vector<std::byte>(std::size_t{4} * kSweepBlockWords)});
  e.buffers[1].compared = kSweepBlockWords;
  return e;
}

// FNV-1a over words, in four lanes so that the multiplications overlap.
std::uint64_t digest(const std::vector<std::byte>& bytes) {
  std::uint64_t lanes[4] = {0xcbf29ce484222325, 1, 2, 3};
  for (std::size_t i = 0; i < bytes.size(); i += 16) {
    std::uint32_t words[4];
    std::memcpy(words, &bytes[i], 16);
    for (int l = 0; l < 4; ++l) lanes[l] = (lanes[l] ^ words[l]) * 0x100000001b3;
  }
  std::uint64_t hash = 0;
  for (const std::uint64_t lane : lanes) hash = (hash ^ lane) * 0x100000001b3;
  return hash;
}

}  // namespace

const std::vector<std::string>& swept_functions() {
  static const std::vector<std::string> all = {
      "ex2.approx.ftz.f32",   "ex2.approx.f32",   "rcp.approx.ftz.f32",  "rcp.approx.f32",
      "rsqrt.approx.ftz.f32", "rsqrt.approx.f32", "sqrt.approx.ftz.f32", "sqrt.approx.f32",
      "lg2.approx.ftz.f32",   "lg2.approx.f32"};
  return all;
}

std::string full_sweep_path(const std::string& source, const std::string& function) {
  return fmt::format("{}/tests/emulator/hardware/golden/full/{}.txt", source, function);
}

std::vector<std::uint64_t> sweep_digests(const std::vector<Workbench*>& workbenches,
                                         const std::string& function,
                                         const std::vector<std::uint32_t>& blocks, Status* status) {
  std::vector<std::uint64_t> digests(blocks.size());
  std::mutex mutex;
  std::size_t next = 0;
  const auto work = [&](Workbench* workbench) {
    while (true) {
      std::unique_lock lock(mutex);
      if (next == blocks.size() || !status->ok()) return;
      const std::size_t i = next++;
      lock.unlock();
      const Experiment e = block_of(function, blocks[i]);
      Results results;
      if (const Status s = run(*workbench, e, e.modules[0], &results); !s.ok()) {
        lock.lock();
        *status = s;
        return;
      }
      digests[i] = digest(results[1]);
    }
  };
  std::vector<std::thread> threads;
  for (Workbench* workbench : workbenches) threads.emplace_back(work, workbench);
  for (std::thread& thread : threads) thread.join();
  return digests;
}

std::string full_sweep_text(const std::string& machine, const std::vector<std::uint64_t>& digests) {
  std::string text = fmt::format("# {}\n", machine);
  for (const std::uint64_t digest : digests) text += fmt::format("{:016x}\n", digest);
  return text;
}

std::vector<std::uint64_t> read_full_sweep(const std::string& path) {
  std::ifstream file(path);
  std::string machine, line;
  std::getline(file, machine);
  std::vector<std::uint64_t> digests;
  while (std::getline(file, line)) digests.push_back(std::strtoull(line.c_str(), nullptr, 16));
  return digests;
}

}  // namespace flashback::emulator::testing
