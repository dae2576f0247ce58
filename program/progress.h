// A bar on stderr for work that takes long, drawn only where stderr is a terminal and gone when the work is
// done.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace flashback::program {

class Progress {
 public:
  explicit Progress(std::size_t steps);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The step before is done, this one begins.
  void step(std::string name);
  // Clears the line.
  void finish();

 private:
  void draw();          // with mutex_ held
  void keep_drawing();  // so that the seconds run while a step computes

  const std::size_t steps_;
  const std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  std::condition_variable finished_signal_;
  std::string name_;
  std::size_t begun_ = 0;
  bool finished_ = false;
  std::thread drawer_;  // only where stderr is a terminal
};

}  // namespace flashback::program
