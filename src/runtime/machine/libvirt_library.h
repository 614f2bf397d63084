// SPDX-License-Identifier: Apache-2.0
// The functions of libvirt that we use, from a library that is loaded when a hypervisor starts.
// Only a host of machines carries libvirt and the thirty libraries behind it, which are a sixth of
// an idle server's memory otherwise; and the program runs where there is no libvirt.
#pragma once

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include "base/status.h"

namespace berth::runtime {

#define BERTH_LIBVIRT_FUNCTIONS(X)     \
  X(virConnectClose)                   \
  X(virConnectDomainEventRegisterAny)  \
  X(virConnectGetAllDomainStats)       \
  X(virConnectGetLibVersion)           \
  X(virConnectGetVersion)              \
  X(virConnectListAllDomains)          \
  X(virConnectOpen)                    \
  X(virConnectRegisterCloseCallback)   \
  X(virConnectSetKeepAlive)            \
  X(virConnectUnregisterCloseCallback) \
  X(virDomainAbortJob)                 \
  X(virDomainAttachDeviceFlags)        \
  X(virDomainBackupBegin)              \
  X(virDomainBackupGetXMLDesc)         \
  X(virDomainBlockResize)              \
  X(virDomainCreateWithFlags)          \
  X(virDomainDefineXMLFlags)           \
  X(virDomainDestroy)                  \
  X(virDomainDetachDeviceFlags)        \
  X(virDomainFree)                     \
  X(virDomainGetJobStats)              \
  X(virDomainGetMetadata)              \
  X(virDomainGetName)                  \
  X(virDomainGetState)                 \
  X(virDomainGetUUIDString)            \
  X(virDomainGetXMLDesc)               \
  X(virDomainIsActive)                 \
  X(virDomainLookupByName)             \
  X(virDomainResume)                   \
  X(virDomainShutdownFlags)            \
  X(virDomainStatsRecordListFree)      \
  X(virDomainUndefineFlags)            \
  X(virEventAddTimeout)                \
  X(virEventRegisterDefaultImpl)       \
  X(virEventRemoveTimeout)             \
  X(virEventRunDefaultImpl)            \
  X(virEventUpdateTimeout)             \
  X(virGetLastError)                   \
  X(virGetLastErrorCode)               \
  X(virSecretDefineXML)                \
  X(virSecretFree)                     \
  X(virSecretLookupByUUIDString)       \
  X(virSecretSetValue)                 \
  X(virSecretUndefine)                 \
  X(virSetErrorFunc)                   \
  X(virTypedParamsFree)

// NOLINTBEGIN(readability-identifier-naming): the names are libvirt's
struct LibvirtFunctions {
#define BERTH_LIBVIRT_MEMBER(name) decltype(&::name) name = nullptr;
  BERTH_LIBVIRT_FUNCTIONS(BERTH_LIBVIRT_MEMBER)
#undef BERTH_LIBVIRT_MEMBER
};
// NOLINTEND(readability-identifier-naming)

// Loads it, once; Unavailable if it is not there or lacks something. Any thread.
Status LoadLibvirt();
// REQUIRES: LoadLibvirt() was ok.
const LibvirtFunctions& Libvirt();

}  // namespace berth::runtime
