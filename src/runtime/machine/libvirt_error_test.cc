// SPDX-License-Identifier: Apache-2.0
// Defends: only of what may have been done nobody says that it failed.
#include "runtime/machine/libvirt_error.h"

#include <gtest/gtest.h>
#include <libvirt/virterror.h>

namespace berth::runtime {
namespace {

TEST(LibvirtError, TellsALostConnectionFromAFailure) {
  const struct {
    int domain;
    int code;
    std::string_view text;
    Reason reason;
  } kCases[] = {
      {VIR_FROM_QEMU,
       VIR_ERR_SYSTEM_ERROR,
       "Cannot access storage file '/gone': No such file or directory",
       Reason::kInternal},
      {VIR_FROM_RPC,
       VIR_ERR_SYSTEM_ERROR,
       "Failed to connect socket to '/run/libvirt/libvirt-sock'",
       Reason::kUnavailable},
      {VIR_FROM_RPC,
       VIR_ERR_SYSTEM_ERROR,
       "End of file while reading data: Input/output error",
       Reason::kUnavailable},
      {VIR_FROM_REMOTE, VIR_ERR_RPC, "an RPC error", Reason::kUnavailable},
      {VIR_FROM_RPC, VIR_ERR_INTERNAL_ERROR, "client socket is closed", Reason::kUnavailable},
      {VIR_FROM_QEMU, VIR_ERR_OPERATION_TIMEOUT, "cannot acquire state", Reason::kTimeout},
      {VIR_FROM_QEMU, VIR_ERR_NO_DOMAIN, "no domain", Reason::kNotFound},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ReasonOfLibvirt(c.domain, c.code, c.text), c.reason) << c.text;
  }
}

}  // namespace
}  // namespace berth::runtime
