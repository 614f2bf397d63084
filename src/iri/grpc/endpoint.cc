// SPDX-License-Identifier: Apache-2.0
#include "iri/grpc/endpoint.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "rt/sleep.h"

namespace berth::iri {

namespace {

constexpr Duration kLookEvery = Duration::Seconds(1);
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }
  int Release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

std::string Errno() { return std::strerror(errno); }

bool IsTrusted(uid_t user, const std::vector<uid_t>& allowed) {
  return user == 0 || user == ::geteuid() || std::ranges::find(allowed, user) != allowed.end();
}

std::string_view WordOf(RuntimeKind kind) {
  switch (kind) {
    case RuntimeKind::kMachine: return "machine";
    case RuntimeKind::kVolume: return "volume";
    case RuntimeKind::kBucket: return "bucket";
  }
  return "";
}

// The folder must be such that only root, we or who is allowed can put something into it.
Status CheckFolder(int folder, const std::string& path, const std::vector<uid_t>& allowed) {
  struct stat info = {};
  if (::fstat(folder, &info) != 0) return Unavailable("folder of " + path + ": " + Errno());
  if (!IsTrusted(info.st_uid, allowed)) {
    return Forbidden("the folder of socket " + path + " belongs to user " +
                     std::to_string(info.st_uid) + "; it must belong to root or to user " +
                     std::to_string(::geteuid()));
  }
  if ((info.st_mode & kOthersWrite) != 0) {
    return Forbidden("the folder of socket " + path +
                     " may be written by others; take another one, or: chmod go-w " +
                     std::filesystem::path(path).parent_path().string());
  }
  return OkStatus();
}

Result<int> OpenFolder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int opened = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return NotFound("folder " + folder + ": " + Errno());
  return opened;
}

// The address of a name in an open folder: nobody can exchange the folder in between, and its path
// may be as long as it likes.
Result<sockaddr_un> AddressIn(int folder, const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = "/proc/self/fd/" + std::to_string(folder) + "/" +
                           std::filesystem::path(path).filename().string();
  if (name.size() >= sizeof(address.sun_path)) {
    return BadRequest("socket " + path + ": its name is longer than " +
                      std::to_string(sizeof(address.sun_path) - 1) + " bytes");
  }
  std::memcpy(static_cast<char*>(address.sun_path), name.c_str(), name.size() + 1);
  return address;
}

Status CheckPeer(int socket, const std::string& path, const std::vector<uid_t>& allowed) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Unavailable("socket " + path + ": " + Errno());
  }
  if (IsTrusted(peer.uid, allowed)) return OkStatus();
  return Forbidden("the runtime behind " + path + " runs as user " + std::to_string(peer.uid) +
                   ", which may not serve user " + std::to_string(::geteuid()));
}

}  // namespace

std::string_view EndpointVariable(RuntimeKind kind) {
  switch (kind) {
    case RuntimeKind::kMachine: return "IRI_MACHINE_RUNTIME_ENDPOINT";
    case RuntimeKind::kVolume: return "IRI_VOLUME_RUNTIME_ENDPOINT";
    case RuntimeKind::kBucket: return "IRI_BUCKET_RUNTIME_ENDPOINT";
  }
  return "";
}

std::vector<std::string> WellKnownSockets(RuntimeKind kind, std::string_view folder) {
  const std::string begin = std::string(folder) + "/iri-" + std::string(WordOf(kind));
  return {begin + "broker.sock", begin + "provider.sock"};
}

Result<std::string> SocketPath(std::string_view endpoint) {
  std::string_view path = endpoint;
  if (path.starts_with("unix://")) {
    path.remove_prefix(std::string_view("unix://").size());
  } else if (path.starts_with("unix:")) {
    path.remove_prefix(std::string_view("unix:").size());
  }
  if (!path.starts_with('/')) {
    return BadRequest("endpoint " + Quote(endpoint) +
                      ": expected the absolute path of a unix socket, as unix:/run/x.sock");
  }
  return std::string(path);
}

rt::Task<Result<std::string>> FindEndpoint(EndpointSearch search) {
  const std::string& named = search.flag.empty() ? search.variable : search.flag;
  if (!named.empty()) co_return SocketPath(named);
  const std::vector<std::string> candidates = WellKnownSockets(search.kind, search.folder);
  for (Duration waited;; waited += kLookEvery) {
    for (const std::string& path : candidates) {
      std::error_code ignored;
      if (std::filesystem::is_socket(path, ignored)) co_return path;
    }
    if (waited >= search.limit) break;
    CO_TRY_STATUS(co_await rt::Sleep(kLookEvery));
  }
  co_return NotFound("no " + std::string(WordOf(search.kind)) + " runtime: none of " +
                     Join(candidates, ", ") + " appeared within " + FormatDuration(search.limit) +
                     "; name its socket with " + std::string(EndpointVariable(search.kind)));
}

Result<int> ConnectSocket(const std::string& path, const std::vector<uid_t>& allowed_uids) {
  TRY(const int opened, OpenFolder(path));
  const Descriptor folder(opened);
  TRY_STATUS(CheckFolder(folder.get(), path, allowed_uids));
  struct stat info = {};
  const std::string name = std::filesystem::path(path).filename().string();
  if (::fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return NotFound("socket " + path + ": " + Errno() + "; is the runtime started?");
  }
  if (S_ISLNK(info.st_mode)) {
    return Forbidden("socket " + path + " is a symbolic link; name the socket itself");
  }
  if (!S_ISSOCK(info.st_mode)) return BadRequest(path + " is not a socket");
  TRY(const sockaddr_un address, AddressIn(folder.get(), path));
  Descriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (connection.get() < 0) return Unavailable("socket: " + Errno());
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(connection.get(), generic, sizeof(address)) != 0) {
    return Unavailable("connect " + path + ": " + Errno() + "; does the runtime run?");
  }
  TRY_STATUS(CheckPeer(connection.get(), path, allowed_uids));
  return connection.Release();
}

bool HasHungUp(int socket) {
  pollfd wanted = {.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&wanted, 1, 0) > 0 && (wanted.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

Result<std::vector<uid_t>> UsersOf(const std::vector<std::string>& names) {
  std::vector<uid_t> users;
  for (const std::string& name : names) {
    const std::optional<uint64_t> number = ParseUint(name);
    const passwd* const found = number.has_value() ? nullptr : ::getpwnam(name.c_str());
    if (!number.has_value() && found == nullptr) return NotFound("there is no user " + Quote(name));
    if (number.value_or(0) > std::numeric_limits<uid_t>::max()) {
      return BadRequest("user " + Quote(name) + ": expected a name or a number of a user");
    }
    users.push_back(found != nullptr ? found->pw_uid : static_cast<uid_t>(*number));
  }
  return users;
}

Status PrepareSocket(const std::string& path, mode_t folder_mode) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return BadRequest("socket " + path + ": " + std::to_string(path.size()) + " bytes, at most " +
                      std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                      " are possible; choose a shorter path");
  }
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (::mkdir(parent.c_str(), folder_mode) == 0) {
    if (::chmod(parent.c_str(), folder_mode) != 0) {  // whatever the umask is
      return BadRequest("folder " + parent + ": " + Errno());
    }
  } else if (errno != EEXIST) {
    return BadRequest("folder " + parent + ": " + Errno());
  }
  TRY(const int opened, OpenFolder(path));
  const Descriptor folder(opened);
  TRY_STATUS(CheckFolder(folder.get(), path, {}));
  Result<int> answer = ConnectSocket(path);
  if (answer.ok()) {
    ::close(*answer);
    return AlreadyExists("socket " + path + ": a runtime serves it already");
  }
  if (answer.status().Is(Reason::kNotFound)) return OkStatus();
  if (!answer.status().Is(Reason::kUnavailable)) return answer.status();
  const std::string name = std::filesystem::path(path).filename().string();
  if (::unlinkat(folder.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return BadRequest("socket " + path + ": " + Errno());
  }
  return OkStatus();
}

}  // namespace berth::iri
