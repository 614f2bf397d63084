// SPDX-License-Identifier: Apache-2.0
// Where a runtime's socket is, and whether it may be trusted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "rt/task.h"

namespace berth::iri {

enum class RuntimeKind : uint8_t { kMachine, kVolume, kBucket };

// "IRI_MACHINE_RUNTIME_ENDPOINT": the variable that names the socket of such a runtime.
std::string_view EndpointVariable(RuntimeKind kind);
// The sockets that are tried without a flag and without the variable, in order.
std::vector<std::string> WellKnownSockets(RuntimeKind kind, std::string_view folder = "/var/run");

struct EndpointSearch {
  RuntimeKind kind = RuntimeKind::kMachine;
  std::string flag;      // "unix:/run/x.sock", "/run/x.sock"; wins if it is set
  std::string variable;  // the value of EndpointVariable(kind); second
  std::string folder = "/var/run";
  Duration limit = Duration::Seconds(20);  // a socket may appear late; looked for every second
};
// The path of the socket. A path that was named is not waited for. NotFound names all that was
// tried.
rt::Task<Result<std::string>> FindEndpoint(EndpointSearch search);

// The path in "unix:/p", "unix:///p" or "/p"; BadRequest for other schemes and relative paths.
Result<std::string> SocketPath(std::string_view endpoint);

// An open, non-blocking connection. Forbidden, with the reason and what to do, if someone else
// could have put the socket there: its folder is writable by others or belongs to another user, it
// is a symbolic link, or the process behind it runs as another user. Another is who is neither
// root, nor us, nor one of `allowed_uids`.
Result<int> ConnectSocket(const std::string& path, const std::vector<uid_t>& allowed_uids = {});
// Whether the other side has hung up.
bool HasHungUp(int socket);

// Makes room for a socket of our own: the folder is made with this mode if it is missing, and
// refused if others may write to it. A dead socket is removed; AlreadyExists if somebody answers.
Status PrepareSocket(const std::string& path, mode_t folder_mode = 0700);

// The users of these names or numbers. NotFound names the one that is none. REQUIRES: one thread.
Result<std::vector<uid_t>> UsersOf(const std::vector<std::string>& names);

}  // namespace berth::iri
