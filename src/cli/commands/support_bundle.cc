// SPDX-License-Identifier: Apache-2.0
// support-bundle: what those who help want to see, without what they must not.
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/strings.h"
#include "base/version.h"
#include "cli/arguments.h"
#include "cli/bundle/archive_writer.h"
#include "cli/bundle/redact.h"
#include "cli/commands/doctor.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/fetch.h"
#include "cli/session/session.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr size_t kObjectsMax = 2'000;             // of a kind
constexpr uint64_t kArchiveBytesMax = 256 << 20;  // of all contents, unpacked
constexpr size_t kLogBytesMax = 1 << 20;          // the end of a log
constexpr size_t kFilesMax = 2'000;               // told of a data folder

// "20231114-221320".
std::string StampOf(WallTime now) {
  std::string out;
  for (const char c : FormatRfc3339(now).substr(0, 19)) {
    if (c == 'T') out.push_back('-');
    if (c >= '0' && c <= '9') out.push_back(c);
  }
  return out;
}

// The last bytes of a file, from the beginning of a line.
Result<std::string> EndOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return NotFound(fmt::format("{} cannot be read", Printable(path)));
  const auto size = static_cast<size_t>(std::max<std::streamoff>(0, file.tellg()));
  const size_t skipped = size > kLogBytesMax ? size - kLogBytesMax : 0;
  file.seekg(static_cast<std::streamoff>(skipped));
  std::string text(size - skipped, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  if (skipped > 0) text.erase(0, text.find('\n') + 1);
  return text;
}

// Files of /proc have no size.
Result<std::string> ContentOf(const std::string& path) {
  std::ifstream file(path);
  if (!file) return NotFound(fmt::format("{} cannot be read", path));
  std::string text(kLogBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

std::string SystemText() {
  utsname name{};
  if (::uname(&name) != 0) return "";
  return fmt::format("{} {} {}\nprocessors: {}\n",
                     name.sysname,
                     name.release,
                     name.machine,
                     ::sysconf(_SC_NPROCESSORS_ONLN));
}

// Names, sizes and modes; no contents.
Result<std::string> ListingOf(const std::string& folder) {
  std::string out;
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(folder, error);
  size_t count = 0;
  for (; !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    struct stat info{};
    if (::lstat(it->path().c_str(), &info) != 0) continue;  // gone meanwhile
    if (++count > kFilesMax) return out + "and more\n";
    out += fmt::format("{:06o} {:>5} {:>12} {}\n",
                       info.st_mode,
                       info.st_uid,
                       info.st_size,
                       Printable(it->path().lexically_relative(folder).string()));
  }
  if (error) return Unavailable(fmt::format("{}: {}", Printable(folder), error.message()));
  return out;
}

class Bundle {
 public:
  Bundle(Session& session, ArchiveWriter& writer, size_t objects_max)
      : session_(session), writer_(writer), objects_max_(objects_max) {}

  // What cannot be had is told in the bundle; only a bundle that cannot be written is an error.
  Status AddText(std::string_view name, const Result<std::string>& text) {
    if (!text.ok()) {
      Note(fmt::format("{}: {}", name, text.status().message()));
      return OkStatus();
    }
    const std::string shown = RedactText(*text);
    if (writer_.bytes() + shown.size() > kArchiveBytesMax) {
      Note(fmt::format(
          "{}: left out, the bundle would be larger than {} MiB", name, kArchiveBytesMax >> 20));
      return OkStatus();
    }
    return writer_.Add(name, shown);
  }

  Status AddFindings(const std::string& data_dir) {
    std::string lines;
    for (const Finding& finding : Examine(session_, data_dir)) {
      lines += meta::WriteJson(ValueOf(finding)) + "\n";
    }
    return AddText("doctor.jsonl", lines);
  }

  Status AddServer() {
    const auto api = session_.GetApi();
    if (!api.ok()) {
      Note(fmt::format("server: {}", FailureOf(api.status()).message));
      return OkStatus();
    }
    TRY_STATUS(AddText("server/version.json", (*api)->GetText("/version")));
    TRY_STATUS(AddText("server/readyz.txt", (*api)->GetText("/readyz")));
    TRY_STATUS(AddText("server/metrics.txt", (*api)->GetText("/metrics")));
    const auto discovery = session_.GetDiscovery();
    const auto resources =
        discovery.ok() ? (*discovery)->All() : Result<std::vector<Resource>>(discovery.status());
    if (!resources.ok()) {
      Note(fmt::format("kinds: {}", FailureOf(resources.status()).message));
      return OkStatus();
    }
    for (const Resource& resource : *resources) {
      // Aliases and the other view of events are the same objects once more.
      if (!resource.Can("list") || !resource.alias_of.empty() ||
          resource.group == "events.k8s.io") {
        continue;
      }
      TRY_STATUS(AddObjects(**api, resource));
    }
    return OkStatus();
  }

  Status AddHost(const std::string& data_dir, const std::string& log) {
    TRY_STATUS(AddText("host/system.txt", SystemText()));
    constexpr std::array kFiles = {"/etc/os-release",
                                   "/proc/meminfo",
                                   "/proc/loadavg",
                                   "/proc/self/limits",
                                   "/proc/self/cgroup"};
    for (const std::string_view path : kFiles) {
      const std::string name = fmt::format("host/{}.txt", path.substr(path.rfind('/') + 1));
      TRY_STATUS(AddText(name, ContentOf(std::string(path))));
    }
    if (!data_dir.empty()) {
      TRY_STATUS(AddText("host/data-dir.txt", ListingOf(data_dir)));
      TRY_STATUS(AddText("host/store-log.txt", EndOf(data_dir + "/store/LOG")));
    }
    return log.empty() ? OkStatus() : AddText("host/server-log.txt", EndOf(log));
  }

  Status AddSummary() {
    Value summary = Value::Object();
    summary.Set("created", FormatRfc3339(session_.environment().wall_now()));
    summary.Set("client", fmt::format("v{}", kVersion));
    if (const auto connection = session_.GetConnection(); connection.ok()) {
      summary.Set("context", connection->context);
      summary.Set("server", connection->server);
    }
    Value& notes = summary.Set("notes", Value::Array());
    for (const std::string& note : notes_) notes.Append(Value(note));
    return AddText("summary.json", meta::WriteJson(summary) + "\n");
  }

  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void Note(std::string text) { notes_.push_back(RedactText(text)); }

  Status AddObjects(Api& api, const Resource& resource) {
    std::string lines;
    size_t count = 0;
    bool is_cut = false;
    const auto take = [&](Value page) -> Status {
      Value* items = page.Find("items");
      if (items == nullptr || !items->is_array()) return OkStatus();
      for (Value& item : items->items()) {
        is_cut = count == objects_max_;
        if (is_cut) return Cancelled("enough");
        // Items of a list do not say what they are, and what they are says what is taken out.
        if (item.is_object()) item.Set("kind", resource.kind);
        lines += meta::WriteJson(Redact(std::move(item))) + "\n";
        ++count;
      }
      return OkStatus();
    };
    const auto restart = [&] {
      lines.clear();
      count = 0;
    };
    const Status fetched = FetchPages(api, PathOf(resource, ""), {}, kAcceptJson, take, restart);
    const std::string name = resource.QualifiedPlural();
    if (is_cut) {
      Note(fmt::format("{}: only the first {}", name, objects_max_));
    } else if (!fetched.ok()) {
      Note(fmt::format("{}: {}", name, FailureOf(fetched).message));
    }
    return lines.empty() ? OkStatus() : AddText(fmt::format("objects/{}.jsonl", name), lines);
  }

  Session& session_;
  ArchiveWriter& writer_;
  const size_t objects_max_;
  std::vector<std::string> notes_;
};

Status RunSupportBundle(Session& session, const Arguments& arguments) {
  if (!arguments.words().empty()) {
    return Advise(BadRequest("support-bundle takes no words"), "berth support-bundle -f FILE");
  }
  const std::string stamp = StampOf(session.environment().wall_now());
  const std::string folder = "berth-support-" + stamp;
  const std::string path = arguments.Given("file") ? arguments.Text("file") : folder + ".tar.gz";
  const std::string& data_dir = arguments.Text("data-dir");
  TRY(const std::unique_ptr<ArchiveWriter> writer,
      ArchiveWriter::Begin(path, folder, session.environment().wall_now()));
  Bundle bundle(session, *writer, kObjectsMax);
  TRY_STATUS(bundle.AddFindings(data_dir));
  TRY_STATUS(bundle.AddServer());
  TRY_STATUS(bundle.AddHost(data_dir, arguments.Text("log")));
  TRY_STATUS(bundle.AddSummary());
  TRY_STATUS(writer->Finish());
  for (const std::string& note : bundle.notes()) {
    session.err() << fmt::format("note: {}\n", Printable(note));
  }
  session.out() << fmt::format(
      "{} written: {} files. Values of Secrets and ConfigMaps, foreign annotations, tokens and "
      "keys "
      "are left out;\nnames, addresses and events are in it: look before you send it on.\n",
      Printable(path),
      writer->entries());
  return OkStatus();
}

constexpr std::array kFlags = {
    Flag{.name = "file",
         .letter = 'f',
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "Where to write; berth-support-TIME.tar.gz if it is not given.",
         .completion = Completion::kFiles},
    Flag{
        .name = "data-dir",
        .kind = FlagKind::kText,
        .value_name = "FOLDER",
        .help = "Of a server on this host: names and sizes of its files, and the store's messages.",
        .variable = "BERTH_DATA_DIR",
        .completion = Completion::kFiles},
    Flag{.name = "log",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "A log of the server; its end goes into the bundle.",
         .completion = Completion::kFiles},
};

}  // namespace

Command SupportBundleCommand() {
  return {.name = "support-bundle",
          .group = "Server",
          .summary = "Collect what helps to find a fault, without secrets",
          .details =
              "Objects, events, metrics, the doctor's findings and facts of this host in one "
              "archive. What you may "
              "not see is not in it; a server that does not answer leaves its part out.",
          .examples =
              "berth support-bundle\n"
              "berth support-bundle -f /tmp/bundle.tar.gz --data-dir /var/lib/berth",
          .flags = kFlags,
          .run = &RunSupportBundle};
}

}  // namespace berth::cli
