// SPDX-License-Identifier: Apache-2.0
#include "app/host_plan.h"

#include <optional>
#include <utility>
#include <vector>

#include "app/poollet/hardware.h"
#include "app/runtime/runtime_flags.h"
#include "app/up/local_host.h"
#include "base/folders.h"
#include "base/strings.h"
#include "cli/failure.h"
#include "meta/names.h"

namespace berth::app {
namespace {

using cli::Arguments;

// A host name may have what a pool's name may not.
std::string NameOf(const std::string& text) {
  std::string name = ToLower(text);
  for (char& c : name) {
    if (c == '_') c = '-';
  }
  return meta::IsDnsSubdomain(name) ? name : "host";
}

std::string Word(std::string_view flag, const std::string& value) {
  return "--" + std::string(flag) + "=" + value;
}

// Every runtime reads it, as the guests' user.
Result<std::string> ReadableFile(const Arguments& arguments,
                                 std::string_view flag,
                                 const std::optional<ProcessUser>& user) {
  TRY(std::string path, AbsolutePath(arguments.Text(flag), flag));
  const std::string why = WhyUnreadable(path, user);
  if (why.empty()) return path;
  return BadRequest("--" + std::string(flag) + " " + Quote(path) + ": " + why);
}

Status PassOnImageFlags(const Arguments& arguments, HostOptions& options) {
  for (const std::string_view flag : {"registry-ca", "registry-credentials"}) {
    if (arguments.Text(flag).empty()) continue;
    TRY(const std::string path, ReadableFile(arguments, flag, options.user));
    options.image_words.push_back(Word(flag, path));
  }
  for (const std::string_view flag : {"image-size-max", "image-cache"}) {
    options.image_words.push_back(Word(flag, arguments.Text(flag)));
  }
  for (const std::string& host : arguments.List("registry")) {
    options.image_words.push_back(Word("registry", host));
  }
  return OkStatus();
}

Status PassOnRoom(const Arguments& arguments, HostOptions& options) {
  TRY_STATUS(ParseAmount(arguments, "reserve-cpu", "an amount such as 1"));
  TRY_STATUS(ParseAmount(arguments, "reserve-memory", "an amount such as 2Gi"));
  TRY_STATUS(ParseAmount(arguments, "local-disk", "an amount such as 100Gi"));
  TRY_STATUS(ParseAmount(arguments, "reserve", "a size such as 500Gi"));
  for (const std::string_view flag : {"overcommit-cpu", "overcommit-memory"}) {
    TRY_STATUS(ParseOvercommit(arguments.Text(flag), flag));
  }
  options.machine_words.clear();
  for (const cli::Flag& flag : kHostMachineFlags) {
    options.machine_words.push_back(Word(flag.name, arguments.Text(flag.name)));
  }
  for (const cli::Flag& flag : kHostVolumeFlags) {
    options.volume_words.push_back(Word(flag.name, arguments.Text(flag.name)));
  }
  return OkStatus();
}

}  // namespace

Result<HostPlan> PlanHost(const Arguments& arguments,
                          const cli::Environment& environment,
                          const std::string& data_dir) {
  HostPlan plan;
  if (arguments.Text("host") == "none") {
    plan.why_not = "none was asked for";
    return plan;
  }
  // What would be wrong for a runtime is said here, before it is started again and again.
  TRY_STATUS(RegistryOptionsOf(arguments));
  TRY_STATUS(PassOnRoom(arguments, plan.options));
  plan.options.folder = HostDirOf(arguments.Text("host-dir"), data_dir, environment);
  plan.options.run_folder =
      DefaultRunDir(plan.options.folder, environment.Variable("XDG_RUNTIME_DIR"));
  const auto user = GuestUserOfThisMachine();
  plan.why_not = user.ok() ? MissingForGuests(plan.options.folder, plan.options.run_folder, *user)
                           : user.status().message();
  if (!plan.why_not.empty()) return plan;
  plan.options.user = *user;
  // Its machine runtime would refuse it, again and again.
  if (!IsInMemory(plan.options.run_folder)) {
    plan.why_not = "there is no folder in memory for its secrets: mount a tmpfs at /dev/shm";
    return plan;
  }
  plan.options.name = arguments.Text("host-name");
  if (plan.options.name.empty()) plan.options.name = NameOf(Hostname());
  plan.options.acceleration = arguments.Text("acceleration");
  plan.options.rights = user->has_value() ? NetworkRights() : "";
  TRY_STATUS(PassOnImageFlags(arguments, plan.options));
  return plan;
}

}  // namespace berth::app
