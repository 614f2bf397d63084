// SPDX-License-Identifier: Apache-2.0
// Serial lines for tests: what a guest says is said by the test.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rt/channel.h"
#include "rt/event.h"
#include "runtime/machine/serial_line.h"

namespace berth::runtime {

class FakeSerialLines final : public SerialLines {
 public:
  // The guest's end. Outlives the line.
  struct Wire {
    std::string socket;
    rt::Channel<std::string> said{64};
    std::string typed;
    bool is_open = true;
    rt::Event reads;  // reset: the guest takes nothing
    Wire() { reads.Set(); }
  };

  rt::Task<Result<std::unique_ptr<SerialLine>>> Open(std::string socket) override {
    wires.push_back(std::make_shared<Wire>());
    wires.back()->socket = std::move(socket);
    std::unique_ptr<SerialLine> line = std::make_unique<Line>(wires.back());
    co_return line;
  }

  std::vector<std::shared_ptr<Wire>> wires;

 private:
  class Line final : public SerialLine {
   public:
    explicit Line(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
    ~Line() override { wire_->is_open = false; }
    rt::Task<Result<std::string>> Read() override {
      const auto wire = wire_;
      Result<std::string> said = co_await wire->said.Receive();
      if (said.status().Is(Reason::kUnavailable)) co_return std::string();
      co_return said;
    }
    rt::Task<Status> Write(std::string bytes) override {
      const auto wire = wire_;
      CO_TRY_STATUS(co_await wire->reads.Wait());
      wire->typed += bytes;
      co_return OkStatus();
    }

   private:
    const std::shared_ptr<Wire> wire_;
  };
};

}  // namespace berth::runtime
