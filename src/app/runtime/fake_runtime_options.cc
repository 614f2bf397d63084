// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/fake_runtime_options.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/strings.h"
#include "iri/grpc/endpoint.h"
#include "meta/quantity.h"

namespace berth::app {

using runtime::FakeFaults;
using runtime::FakeLies;

namespace {

Result<meta::Quantity> ParseAmount(std::string_view what, const std::string& text) {
  Result<meta::Quantity> amount = meta::Quantity::Parse(text);
  if (!amount.ok() || amount->Sign() < 0) {
    return BadRequest(std::string(what) + " " + Quote(text) +
                      ": expected an amount such as 8, 500m or 32Gi");
  }
  return amount;
}

struct NamedFault {
  std::string_view name;
  double FakeFaults::* rate;
};
constexpr std::array kFaults = {
    NamedFault{"call", &FakeFaults::call_fails},
    NamedFault{"create", &FakeFaults::create_fails},
    NamedFault{"create-answer", &FakeFaults::create_answer_lost},
    NamedFault{"answer", &FakeFaults::answer_lost},
    NamedFault{"boot", &FakeFaults::boot_fails},
    NamedFault{"delete", &FakeFaults::delete_sticks},
    NamedFault{"crash", &FakeFaults::crashes_per_hour},
};
struct NamedLie {
  std::string_view name;
  bool FakeLies::* told;
};
constexpr std::array kLies = {
    NamedLie{"running", &FakeLies::reports_running},
    NamedLie{"duplicates", &FakeLies::creates_duplicates},
    NamedLie{"leases", &FakeLies::ignores_leases},
    NamedLie{"room", &FakeLies::accepts_everything},
};

// "name=number"; without "=" the number is 1.
Result<std::pair<std::string, double>> ParseRate(std::string_view flag, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return std::pair(text, 1.0);
  const std::string_view digits = std::string_view(text).substr(equals + 1);
  double number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  if (!whole || !(number >= 0)) {
    return BadRequest("--" + std::string(flag) + " " + Quote(text) +
                      ": expected NAME=NUMBER, as create=0.1");
  }
  return std::pair(text.substr(0, equals), number);
}

}  // namespace

Status ParseFault(const std::string& text, FakeFaults& faults) {
  TRY(const auto rate, ParseRate("fail", text));
  for (const NamedFault& fault : kFaults) {
    if (fault.name != rate.first) continue;
    if (fault.rate != &FakeFaults::crashes_per_hour && rate.second > 1) {
      return BadRequest("--fail " + Quote(text) + ": a probability is at most 1");
    }
    faults.*fault.rate = rate.second;
    return OkStatus();
  }
  return BadRequest("--fail " + Quote(text) +
                    ": expected call, create, create-answer, answer, boot, delete or crash");
}

Status ParseLie(const std::string& text, FakeLies& lies) {
  TRY(const auto rate, ParseRate("lie", text));
  if (rate.first == "capacity") {
    lies.capacity_factor = rate.second;
    return OkStatus();
  }
  if (rate.first == "omit") {
    lies.list_omits = rate.second;
    return OkStatus();
  }
  for (const NamedLie& lie : kLies) {
    if (lie.name != rate.first) continue;
    lies.*lie.told = rate.second > 0;
    return OkStatus();
  }
  return BadRequest("--lie " + Quote(text) +
                    ": expected capacity, omit, running, duplicates, leases or room");
}

Result<iri::MachineClass> ParseMachineClass(const std::string& text) {
  const std::vector<std::string_view> parts = Split(text, ':');
  if (parts.size() != 3 || parts[0].empty()) {
    return BadRequest("--classes " + Quote(text) + ": expected NAME:CORES:MEMORY, as small:1:1Gi");
  }
  TRY(const meta::Quantity cores, ParseAmount("--classes", std::string(parts[1])));
  TRY(const meta::Quantity memory, ParseAmount("--classes", std::string(parts[2])));
  iri::MachineClass machine_class;
  machine_class.name = parts[0];
  machine_class.capabilities = {{std::string(iri::kCpu), cores.Value()},
                                {std::string(iri::kMemory), memory.Value()}};
  return machine_class;
}

Result<runtime::FakeHostOptions> FakeHostOf(const cli::Arguments& arguments) {
  runtime::FakeHostOptions options = runtime::DefaultFakeHost();
  options.name = arguments.Text("name");
  if (arguments.Switch("foreign")) options.flavor = runtime::FakeFlavor::kForeign;
  if (arguments.Text("guests") == "processes") {
    const bool last = !arguments.Text("state-file").empty();
    options.guests =
        last ? runtime::FakeGuests::kLastingProcesses : runtime::FakeGuests::kProcesses;
  }
  TRY(const meta::Quantity cpu, ParseAmount("--cpu", arguments.Text("cpu")));
  TRY(const meta::Quantity memory, ParseAmount("--memory", arguments.Text("memory")));
  TRY(const meta::Quantity storage, ParseAmount("--storage", arguments.Text("storage")));
  options.capacity = {{std::string(iri::kCpu), cpu.MilliValue()},
                      {std::string(iri::kMemory), memory.Value()},
                      {std::string(iri::kStorage), storage.Value()}};
  if (!arguments.List("classes").empty()) options.machine_classes.clear();
  for (const std::string& text : arguments.List("classes")) {
    TRY(iri::MachineClass machine_class, ParseMachineClass(text));
    options.machine_classes.push_back(std::move(machine_class));
  }
  options.times.boot = arguments.Span("boot-time");
  options.times.shutdown = arguments.Span("shutdown-time");
  for (const std::string& text : arguments.List("fail")) {
    TRY_STATUS(ParseFault(text, options.faults));
  }
  for (const std::string& text : arguments.List("lie")) {
    TRY_STATUS(ParseLie(text, options.lies));
  }
  return options;
}

std::vector<FakeSocket> FakeSockets(const std::string& socket_or_folder) {
  if (socket_or_folder.ends_with(".sock")) {
    return {{.path = socket_or_folder, .serves = FakeSocket::Serves::kAll}};
  }
  const auto in_folder = [&](iri::RuntimeKind kind) {
    return iri::WellKnownSockets(kind, socket_or_folder).back();
  };
  return {{.path = in_folder(iri::RuntimeKind::kMachine), .serves = FakeSocket::Serves::kMachines},
          {.path = in_folder(iri::RuntimeKind::kVolume), .serves = FakeSocket::Serves::kVolumes},
          {.path = in_folder(iri::RuntimeKind::kBucket), .serves = FakeSocket::Serves::kBuckets}};
}

}  // namespace berth::app
