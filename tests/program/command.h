// Runs the built `flashback` as a person would, in a directory of its own.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "program/safetensors.h"

namespace flashback::program {

struct Outcome {
  int code;
  std::string out, err;
};

class Command : public ::testing::Test {
 protected:
  Command() {
    std::string name = (std::filesystem::temp_directory_path() / "flashback_test.XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~Command() override { std::filesystem::remove_all(directory_); }

  // `arguments` as a shell reads them; `flashback` is the binary to run.
  Outcome run(const std::string& arguments,
              const std::string& flashback = FLASHBACK_BUILD_DIR "/flashback") const {
    const std::filesystem::path out = directory_ / ".out", err = directory_ / ".err";
    const std::string line = "cd '" + directory_.string() + "' && '" + flashback + "' " + arguments + " >'" +
                             out.string() + "' 2>'" + err.string() + "' </dev/null";
    const int status = std::system(line.c_str());
    const Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(out), content(err)};
    std::filesystem::remove(out);
    std::filesystem::remove(err);
    return outcome;
  }

  // Exit code 2, nothing on standard output, `sentence` alone on standard error, and no file made.
  void expect_refused(const std::string& arguments, const std::string& sentence) const {
    const auto files = [&] { return std::distance(std::filesystem::directory_iterator(directory_), {}); };
    const auto before = files();
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(outcome.err, "flashback: " + sentence + ".\n") << arguments;
    EXPECT_EQ(files(), before) << arguments;
  }

  static std::string content(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  std::filesystem::path directory_;
};

}  // namespace flashback::program
