// SPDX-License-Identifier: Apache-2.0
#include "app/up/down_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/process/process_flags.h"
#include "app/up/host_layout.h"
#include "app/up/instance.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "cli/session/session.h"
#include "rt/asio/asio_loop.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Flag;
using cli::FlagKind;
using cli::Session;

constexpr Duration kLook = Duration::Millis(50);
// Parts get ten seconds each before they are killed, and there are four.
constexpr Duration kStopLimit = Duration::Seconds(60);
constexpr Duration kGuestLimit = Duration::Seconds(10);

constexpr std::array kFlags = {
    Flag{.name = "data-dir",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "Folder of the berth up to end. As root /var/lib/berth, else "
                 "~/.local/share/berth.",
         .variable = "BERTH_DATA_DIR",
         .completion = cli::Completion::kFiles},
    Flag{.name = "host-dir",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "Folder of its host, if that was named.",
         .variable = "BERTH_HOST_DIR",
         .completion = cli::Completion::kFiles},
    Flag{.name = "guests",
         .help = "Pull the plug of its guests, too; those that are switched on start again with "
                 "the next berth up."},
};

// Polls until it is true, or the limit is over.
bool Eventually(Duration limit, const std::function<bool()>& is_met) {
  rt::AsioLoop loop("down");
  const Time end = loop.Now() + limit;
  while (!is_met()) {
    if (loop.Now() >= end) return false;
    if (!rt::RunTask(loop, rt::Sleep(kLook)).ok()) return false;
  }
  return true;
}

// The words of a process; none of one that is gone, or not ours to see.
std::vector<std::string> WordsOf(const std::filesystem::path& process) {
  const auto text = cli::ReadFile((process / "cmdline").string());
  std::vector<std::string> words;
  if (!text.ok()) return words;
  for (const std::string_view word : Split(*text, '\0')) words.emplace_back(word);
  return words;
}

using IsMeant = bool (*)(const std::vector<std::string>& words);
bool IsGuest(const std::vector<std::string>& words) { return words[0].contains("qemu-system"); }
// It holds guests that may be moved to their leases; without guests it has nothing to do.
bool IsFencer(const std::vector<std::string>& words) {
  return words.size() > 1 && words[1] == "fencer";
}

// Processes with a file of the host on their command line.
std::vector<pid_t> ProcessesOf(const std::string& host_dir, IsMeant is_meant) {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto pid = ParseUint(entry.path().filename().string());
    if (!pid.has_value()) continue;
    const std::vector<std::string> words = WordsOf(entry.path());
    const bool is_here = std::ranges::any_of(
        words, [&](const std::string& word) { return word.contains(host_dir + "/"); });
    if (is_here && is_meant(words)) found.push_back(static_cast<pid_t>(*pid));
  }
  return found;
}

std::vector<pid_t> GuestsOf(const std::string& host_dir) { return ProcessesOf(host_dir, &IsGuest); }

Status EndAll(Session& session, const std::string& host_dir) {
  const size_t guests = GuestsOf(host_dir).size();
  TRY_STATUS(EndGuests(host_dir));
  session.out() << fmt::format("guests        {} ended\n", guests) << std::flush;
  // As after a reboot: nobody is left who uses it.
  std::error_code ignored;
  const std::string_view user_folder = session.environment().Variable("XDG_RUNTIME_DIR");
  std::filesystem::remove_all(DefaultRunDir(host_dir, user_folder), ignored);
  return OkStatus();
}

Status RunDown(Session& session, const Arguments& arguments) {
  std::string data_dir = arguments.Text("data-dir");
  if (data_dir.empty()) data_dir = DefaultDataDir(session.environment());
  const std::string host_dir =
      HostDirOf(arguments.Text("host-dir"), data_dir, session.environment());
  TRY(const auto running, FindInstance(data_dir));
  if (running.has_value()) {
    if (kill(*running, SIGTERM) != 0) {
      return Forbidden(fmt::format("process {} is not ours to end", *running));
    }
    const auto has_ended = [&data_dir] {
      const auto now = FindInstance(data_dir);
      return now.ok() && !now->has_value();
    };
    if (!Eventually(kStopLimit, has_ended)) {
      return cli::Advise(Timeout(fmt::format("process {} does not end", *running)),
                         fmt::format("kill -9 {}: the store survives that", *running));
    }
    session.out() << fmt::format("Berth         stopped; its data stays in {}\n", data_dir);
  } else {
    session.out() << fmt::format("Berth         does not run on {}\n", data_dir);
  }
  if (arguments.Switch("guests")) return EndAll(session, host_dir);
  const size_t left = GuestsOf(host_dir).size();
  if (left > 0) {
    session.out() << fmt::format("guests        {} run on; berth down --guests ends them\n", left);
  }
  return OkStatus();
}

}  // namespace

Status EndGuests(const std::string& host_dir) {
  for (const pid_t guest : GuestsOf(host_dir)) kill(guest, SIGTERM);
  for (const pid_t fencer : ProcessesOf(host_dir, &IsFencer)) kill(fencer, SIGTERM);
  const auto none_is_left = [&host_dir] { return GuestsOf(host_dir).empty(); };
  if (Eventually(kGuestLimit, none_is_left)) return OkStatus();
  for (const pid_t guest : GuestsOf(host_dir)) kill(guest, SIGKILL);
  if (Eventually(kGuestLimit, none_is_left)) return OkStatus();
  return Unavailable(fmt::format(
      "{} guests in {} do not end; are you their user?", GuestsOf(host_dir).size(), host_dir));
}

cli::Command DownCommand() {
  return {.name = "down",
          .group = "Server",
          .summary = "End the berth up of a data folder",
          .details =
              "Ends server, poollet, runtimes and libvirtd. Guests run on without them, and the "
              "next berth up finds them. Nothing that is kept is touched.",
          .examples = "berth down\nberth down --guests",
          .flags = kFlags,
          .run = &RunDown};
}

}  // namespace berth::app
