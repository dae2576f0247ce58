// A PTX text run on the machine and recorded.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "emulator/timing/recording.h"
#include "emulator/workbench.h"

namespace flashback::emulator::timing {

// `body` in an entry without parameters; %f<64>, %r<64>, %rd<64>, %p<8> are declared, and 1 KiB of shared
// memory.
inline std::string entry(const std::string& body) {
  return ".version 9.0\n.target sm_100a\n.address_size 64\n"
         ".visible .entry test()\n.maxntid 512\n{\n"
         ".reg .b32 %r<64>;\n.reg .f32 %f<64>;\n.reg .b64 %rd<64>;\n.reg .pred %p<8>;\n"
         ".shared .align 128 .b8 smem[1024];\n" +
         body + "\nret;\n}\n";
}

inline Status run(const std::string& body, int warps, Observer* observer) {
  MachineOptions options;
  options.observer = observer;
  const std::unique_ptr<Workbench> workbench = make_workbench(options);
  const std::string text = entry(body);
  KernelImage image = {"test", Arch::kSm100, text, {}};
  Launch launch;
  launch.image = &image;
  launch.entry = "test";
  launch.block.x = static_cast<std::uint32_t>(32 * warps);
  return workbench->launch(launch, nullptr);
}

inline Recording record(const std::string& body, int warps) {
  Recorder recorder("test", [](std::uint64_t) { return true; });
  const Status status = run(body, warps, &recorder);
  EXPECT_TRUE(status.ok()) << status.sentence();
  std::vector<Recording> recordings = recorder.take();
  EXPECT_EQ(recordings.size(), 1u);
  return recordings.empty() ? Recording{} : std::move(recordings.front());
}

}  // namespace flashback::emulator::timing
