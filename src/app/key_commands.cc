// SPDX-License-Identifier: Apache-2.0
#include "app/key_commands.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <string>

#include "app/process/process_flags.h"
#include "app/sealed_server_store.h"
#include "app/server_in_use.h"
#include "app/server_options.h"
#include "cli/arguments.h"
#include "cli/session/session.h"
#include "net/owned_fd.h"
#include "rt/asio/asio_loop.h"
#include "rt/sleep.h"
#include "store/sealed/key_file.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Flag;
using cli::FlagKind;
using cli::Session;
using store::KeyFile;

// History is kept for two intervals of the compactor at most; it has values under older keys.
constexpr auto kHistory = std::chrono::minutes(15);
constexpr Duration kLook = Duration::Millis(100);

constexpr Flag kDataDir{.name = "data-dir",
                        .kind = FlagKind::kText,
                        .value_name = "DIR",
                        .help =
                            "The server's data folder. As root /var/lib/berth, else "
                            "~/.local/share/berth.",
                        .variable = "BERTH_DATA_DIR",
                        .completion = cli::Completion::kFiles};
constexpr Flag kKeyFile{.name = "encryption-keys",
                        .kind = FlagKind::kText,
                        .value_name = "FILE",
                        .help = "The server's --encryption-keys.",
                        .variable = "BERTH_ENCRYPTION_KEYS",
                        .completion = cli::Completion::kFiles};
constexpr std::array kRotateFlags = {
    kDataDir,
    kKeyFile,
    Flag{.name = "stage",
         .help = "Only add a key that decrypts, to be copied to all servers before --promote."},
    Flag{.name = "promote", .help = "Encrypt with the key that was staged last."},
    Flag{.name = "timeout",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long to wait for the server; 0 does not wait.",
         .fallback = "10m"}};
constexpr std::array kRetireFlags = {
    kDataDir,
    kKeyFile,
    Flag{.name = "yes",
         .letter = 'y',
         .help = "Do it: copies of the store that need these keys become unreadable."}};

struct Where {
  std::string data_dir;
  std::string key_file;
};

Where Find(Session& session, const Arguments& arguments) {
  Where where{.data_dir = arguments.Text("data-dir"),
              .key_file = arguments.Text("encryption-keys")};
  if (where.data_dir.empty()) where.data_dir = DefaultDataDir(session.environment());
  if (where.key_file.empty()) where.key_file = DefaultKeyFile(where.data_dir);
  return where;
}

// Two changes at once would lose a key.
Result<std::unique_ptr<net::OwnedFd>> Lock(const std::string& key_file) {
  const std::string path = key_file + ".lock";
  auto file =
      std::make_unique<net::OwnedFd>(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file->get() < 0) return Unavailable("lock " + path + ": " + std::strerror(errno));
  if (flock(file->get(), LOCK_EX | LOCK_NB) == 0) return file;
  return Conflict("the keys in " + key_file + " are being changed by another command");
}

rt::Task<Status> WaitForDone(rt::Loop* loop, Where where, std::string id, Duration limit) {
  const Time deadline = loop->Now() + limit;
  while (ReadSealedDone(where.key_file) != id) {
    if (!IsServerRunning(where.data_dir)) {
      co_return Unavailable("the server on " + where.data_dir +
                            " has stopped; it goes on when it is started");
    }
    if (loop->Now() >= deadline) {
      co_return Timeout("the server on " + where.data_dir + " still encrypts; " + where.key_file +
                        ".done will say " + id);
    }
    CO_TRY_STATUS(co_await rt::Sleep(kLook));
  }
  co_return OkStatus();
}

Result<std::string> ChangeFile(const Arguments& arguments, const Where& where) {
  TRY(const auto lock, Lock(where.key_file));
  if (arguments.Switch("promote")) return KeyFile::PromoteLast(where.key_file);
  const auto place = arguments.Switch("stage") ? KeyFile::Place::kLast : KeyFile::Place::kFirst;
  return KeyFile::Add(where.key_file, place);
}

Status RunRotate(Session& session, const Arguments& arguments) {
  const Where where = Find(session, arguments);
  const bool stages = arguments.Switch("stage");
  if (stages && arguments.Switch("promote")) {
    return BadRequest("--stage and --promote are two steps: give one of them");
  }
  TRY(const std::string id, ChangeFile(arguments, where));
  if (stages) {
    session.out() << fmt::format("key {} is staged in {}\n", id, where.key_file)
                  << "next          copy the file to all servers, then rotate-key --promote\n";
    return OkStatus();
  }
  session.out() << fmt::format("key {} encrypts from now on\n", id);
  if (!IsServerRunning(where.data_dir)) {
    session.out() << fmt::format(
        "no server runs on {}: what is stored is encrypted anew when one starts\n", where.data_dir);
    return OkStatus();
  }
  if (arguments.Span("timeout") > Duration()) {
    rt::AsioLoop loop("rotate-key");
    TRY_STATUS(rt::RunTask(loop, WaitForDone(&loop, where, id, arguments.Span("timeout"))));
    session.out() << "everything is encrypted with it; keep a copy of " << where.key_file << "\n";
  }
  return OkStatus();
}

Status RunRetire(Session& session, const Arguments& arguments) {
  const Where where = Find(session, arguments);
  TRY(const auto lock, Lock(where.key_file));
  TRY(const auto keys, KeyFile::Open(where.key_file, store::MissingKeys::kRefuse));
  const std::string id = keys->ring().first().id;
  if (ReadSealedDone(where.key_file) != id) {
    return Conflict(
        fmt::format("not everything is encrypted with key {} yet: {}.done does not say "
                    "so; start the server and wait",
                    id,
                    where.key_file));
  }
  std::error_code error;
  const auto done = std::filesystem::last_write_time(where.key_file + ".done", error);
  const auto age = std::filesystem::file_time_type::clock::now() - done;
  if (!arguments.Switch("yes") && (error || age < kHistory)) {
    return Conflict(
        fmt::format("history may still hold values under older keys: wait {} minutes "
                    "after the change of keys, or say --yes",
                    kHistory.count()));
  }
  TRY(const size_t gone, KeyFile::Retire(where.key_file));
  session.out() << fmt::format(
      "{} older keys are gone from {}; key {} is left\n", gone, where.key_file, id);
  return OkStatus();
}

}  // namespace

cli::Command RotateKeyCommand() {
  return {.name = "rotate-key",
          .summary = "Encrypt Secrets at rest with a new key",
          .details =
              "Adds a key to the server's key file; a server that runs takes it over within a\n"
              "second and encrypts what is stored anew while it serves. Older keys stay in the\n"
              "file. With several servers: --stage, copy the file to all of them, --promote.",
          .examples =
              "berth store rotate-key\n"
              "berth store rotate-key --stage",
          .flags = kRotateFlags,
          .run = &RunRotate};
}

cli::Command RetireKeysCommand() {
  return {.name = "retire-keys",
          .usage = "[--yes]",
          .summary = "Forget the keys that nothing is encrypted with any more",
          .flags = kRetireFlags,
          .run = &RunRetire};
}

}  // namespace berth::app
