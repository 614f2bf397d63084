// SPDX-License-Identifier: Apache-2.0
// A guest with an agent, for tests: it runs programs that are none, and says what the test wants.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "meta/json.h"
#include "rt/channel.h"
#include "runtime/machine/serial_line.h"

namespace berth::runtime {

class FakeGuestAgent final : public SerialLines {
 public:
  struct Program {
    std::vector<std::string> argv;
    std::string input;
    int looks_left = 0;   // until it ends by itself; below 0: never
    std::string members;  // of its status when it has ended: "\"exitcode\":0"
    bool ignores_term = false;
  };

  // Instead of the agent's answer to a command: "" says nothing, nullopt is the agent's own.
  std::function<std::optional<std::string>(std::string_view command)> lie;
  std::function<void(Program&)> on_start;  // makes the program what it is
  bool is_there = true;                    // else nobody listens
  std::string noise;                       // said first on every line
  bool hangs_up = false;                   // instead of answering

  std::map<int64_t, Program> programs;
  std::vector<std::string> sockets;  // one for each line
  std::vector<std::string> signals;  // "-TERM 100"

  rt::Task<Result<std::unique_ptr<SerialLine>>> Open(std::string socket) override {
    if (!is_there) co_return Unavailable("connect: no such file");
    sockets.push_back(std::move(socket));
    std::unique_ptr<SerialLine> line = std::make_unique<Line>(*this);
    co_return line;
  }

 private:
  class Line final : public SerialLine {
   public:
    explicit Line(FakeGuestAgent& agent) : agent_(agent) {
      if (!agent.noise.empty()) Say(agent.noise);
    }
    rt::Task<Result<std::string>> Read() override {
      const auto said = said_;
      Result<std::string> bytes = co_await said->Receive();
      if (bytes.status().Is(Reason::kUnavailable)) co_return std::string();
      co_return bytes;
    }
    rt::Task<Status> Write(std::string bytes) override {
      heard_ += bytes;
      for (size_t end = heard_.find('\n'); end != std::string::npos; end = heard_.find('\n')) {
        std::string_view request = std::string_view(heard_).substr(0, end);
        const bool is_marked = request.starts_with('\xff');
        if (is_marked) request.remove_prefix(1);
        if (agent_.hangs_up) said_->Close();
        const std::string answer = agent_.Answer(request);
        // As the real one, which takes the mark for a broken request.
        if (is_marked && !answer.empty()) Say("{\"error\": {\"desc\": \"JSON parse error\"}}\n");
        if (!answer.empty()) Say((is_marked ? "\xff" : "") + answer + "\n");
        heard_.erase(0, end + 1);
      }
      co_return OkStatus();
    }

   private:
    // In pieces, as a socket gives them.
    void Say(std::string_view bytes) {
      constexpr size_t kPieceBytes = size_t{1} << 20;
      for (; !bytes.empty(); bytes.remove_prefix(std::min(kPieceBytes, bytes.size()))) {
        const bool said = said_->TrySend(std::string(bytes.substr(0, kPieceBytes)));
        CHECK(said || said_->closed());
      }
    }
    FakeGuestAgent& agent_;
    std::string heard_;
    std::shared_ptr<rt::Channel<std::string>> said_ =
        std::make_shared<rt::Channel<std::string>>(128);
  };

  std::string Answer(std::string_view request) {
    const Result<meta::Value> parsed = meta::ParseJson(request, size_t{8} << 20);
    CHECK(parsed.ok()) << parsed.status();
    const std::string_view command = parsed->GetString({"execute"});
    if (lie) {
      if (std::optional<std::string> said = lie(command)) return *std::move(said);
    }
    const meta::Value* const arguments = parsed->Find("arguments");
    CHECK(arguments != nullptr) << request;
    if (command == "guest-sync-delimited") {
      return Return(std::to_string(arguments->Find("id")->as_int()));
    }
    if (command == "guest-exec") return Start(*arguments);
    CHECK(command == "guest-exec-status") << command;
    return Look(arguments->Find("pid")->as_int());
  }

  std::string Start(const meta::Value& arguments) {
    Program program;
    program.argv.emplace_back(arguments.GetString({"path"}));
    for (const meta::Value& word : arguments.Find("arg")->items()) {
      program.argv.push_back(word.as_string());
    }
    program.input = *Base64Decode(arguments.GetString({"input-data"}));
    program.members = "\"exitcode\":0";
    if (program.argv[0] == "nope") return R"({"error": {"desc": "Failed to execute nope"}})";
    if (program.argv[0] == "kill") {
      Kill(program.argv[1], ParseInt(program.argv[2]).value());
    } else if (on_start) {
      on_start(program);
    }
    const int64_t pid = next_pid_++;
    programs[pid] = std::move(program);
    return Return("{\"pid\":" + std::to_string(pid) + "}");
  }
  void Kill(const std::string& signal, int64_t pid) {
    signals.push_back(signal + " " + std::to_string(pid));
    Program& program = programs.at(pid);
    if (signal == "-TERM" && program.ignores_term) return;
    program.looks_left = 0;
    program.members = "\"signal\":9";
  }
  std::string Look(int64_t pid) {
    Program& program = programs.at(pid);
    if (program.looks_left != 0) {
      --program.looks_left;
      return Return("{\"exited\":false}");
    }
    return Return("{\"exited\":true," + program.members + "}");
  }
  static std::string Return(const std::string& value) { return "{\"return\": " + value + "}"; }

  int64_t next_pid_ = 100;
};

}  // namespace berth::runtime
