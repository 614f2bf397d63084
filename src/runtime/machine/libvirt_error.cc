// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/libvirt_error.h"

#include <fmt/core.h>

#include <string>

#include "base/strings.h"
#include "runtime/machine/libvirt_library.h"

namespace berth::runtime {
namespace {

constexpr size_t kTextMax = 400;

}  // namespace

Reason ReasonOfLibvirt(int domain, int code, std::string_view text) {
  // Of a connection that ended while the call waited.
  if (text.find("client socket is closed") != std::string_view::npos) return Reason::kUnavailable;
  switch (code) {
    case VIR_ERR_NO_DOMAIN:
    case VIR_ERR_NO_SECRET:
    case VIR_ERR_DEVICE_MISSING: return Reason::kNotFound;
    case VIR_ERR_OPERATION_INVALID:
    case VIR_ERR_RESOURCE_BUSY: return Reason::kConflict;
    case VIR_ERR_XML_ERROR:
    case VIR_ERR_XML_DETAIL:
    case VIR_ERR_XML_INVALID_SCHEMA:
    case VIR_ERR_CONFIG_UNSUPPORTED:
    case VIR_ERR_INVALID_ARG: return Reason::kBadRequest;
    case VIR_ERR_AUTH_FAILED:
    case VIR_ERR_ACCESS_DENIED: return Reason::kForbidden;
    case VIR_ERR_NO_CONNECT:
    case VIR_ERR_INVALID_CONN:
    case VIR_ERR_RPC: return Reason::kUnavailable;
    case VIR_ERR_SYSTEM_ERROR: {
      // Of the connection, or of something that libvirt tried for us.
      const bool is_connection = domain == VIR_FROM_RPC || domain == VIR_FROM_REMOTE;
      return is_connection ? Reason::kUnavailable : Reason::kInternal;
    }
    case VIR_ERR_OPERATION_TIMEOUT:
    case VIR_ERR_AGENT_UNRESPONSIVE: return Reason::kTimeout;
    default: return Reason::kInternal;
  }
}

Status LibvirtFailure(std::string_view doing) {
  const virErrorPtr error = Libvirt().virGetLastError();
  if (error == nullptr) return Internal(fmt::format("{}: libvirt does not say why", doing));
  const std::string_view text = error->message == nullptr ? "" : error->message;
  return {ReasonOfLibvirt(error->domain, error->code, text),
          fmt::format("{}: {}", doing, Printable(text.substr(0, kTextMax)))};
}

}  // namespace berth::runtime
