// SPDX-License-Identifier: Apache-2.0
// Copies of disks by the guests that use them: libvirt's backup jobs.
#include <fmt/core.h>

#include <span>
#include <utility>

#include "base/strings.h"
#include "runtime/machine/domain_text.h"
#include "runtime/machine/libvirt_error.h"
#include "runtime/machine/libvirt_handles.h"
#include "runtime/machine/libvirt_hypervisor.h"
#include "runtime/machine/xml_writer.h"

namespace berth::runtime {
namespace {

using Phase = BackupState::Phase;

std::string BackupXml(const DiskUser& user, const DiskFile& target) {
  XmlWriter xml;
  xml.Open("domainbackup").Attribute("mode", "push").Open("disks").Open("disk");
  xml.Attribute("name", user.device).Attribute("backup", "yes").Attribute("type", "file");
  xml.Open("target").Attribute("file", target.path).Close();
  xml.Open("driver").Attribute("type", DiskFormatName(target.format)).Close();
  xml.Close().Close().Close();
  return xml.Take();
}

Result<DiskUser> UserAmong(std::span<const virDomainPtr> domains, const std::string& path) {
  for (const virDomainPtr domain : domains) {
    const TextHandle xml(Libvirt().virDomainGetXMLDesc(domain, 0));
    if (xml == nullptr) continue;  // it ended meanwhile
    const std::string device = DeviceOfFile(xml.get(), path);
    if (device.empty()) continue;
    return DiskUser{.domain = Libvirt().virDomainGetName(domain), .device = device};
  }
  return NotFound("no running guest has the disk " + path);
}

// How the last job ended, which libvirtd knows as long as it lives. `flags` say whether it forgets.
Result<BackupState> LastEnd(virDomainPtr domain, unsigned flags) {
  int type = VIR_DOMAIN_JOB_NONE;
  virTypedParameterPtr parameters = nullptr;
  int count = 0;
  if (Libvirt().virDomainGetJobStats(
          domain, &type, &parameters, &count, VIR_DOMAIN_JOB_STATS_COMPLETED | flags) < 0) {
    return LibvirtFailure("libvirt");
  }
  BackupState state;
  bool is_backup = false;
  for (const virTypedParameter& one : std::span(parameters, static_cast<size_t>(count))) {
    const std::string_view field = one.field;
    if (field == VIR_DOMAIN_JOB_OPERATION) {
      is_backup = one.value.i == VIR_DOMAIN_JOB_OPERATION_BACKUP;
    }
    if (field == VIR_DOMAIN_JOB_ERRMSG && one.value.s != nullptr) state.problem = one.value.s;
  }
  Libvirt().virTypedParamsFree(parameters, count);
  if (!is_backup) return BackupState();
  if (type == VIR_DOMAIN_JOB_COMPLETED) state.phase = Phase::kDone;
  if (type == VIR_DOMAIN_JOB_FAILED || type == VIR_DOMAIN_JOB_CANCELLED) {
    state.phase = Phase::kFailed;
    if (state.problem.empty()) state.problem = "it was ended";
  }
  return state;
}

Status CountProgress(virDomainPtr domain, BackupState& state) {
  int type = VIR_DOMAIN_JOB_NONE;
  virTypedParameterPtr parameters = nullptr;
  int count = 0;
  if (Libvirt().virDomainGetJobStats(domain, &type, &parameters, &count, 0) < 0) {
    return LibvirtFailure("libvirt");
  }
  for (const virTypedParameter& one : std::span(parameters, static_cast<size_t>(count))) {
    const std::string_view field = one.field;
    if (field == VIR_DOMAIN_JOB_DISK_TOTAL) state.total_bytes = static_cast<int64_t>(one.value.ul);
    if (field == VIR_DOMAIN_JOB_DISK_PROCESSED) {
      state.done_bytes = static_cast<int64_t>(one.value.ul);
    }
  }
  Libvirt().virTypedParamsFree(parameters, count);
  return OkStatus();
}

Result<BackupState> StateOf(virDomainPtr domain) {
  if (Libvirt().virDomainIsActive(domain) == 0) return Conflict("it does not run");
  const TextHandle xml(Libvirt().virDomainBackupGetXMLDesc(domain, 0));
  if (xml != nullptr) {
    BackupState state;
    state.phase = Phase::kRunning;
    state.target = BackupTargetIn(xml.get());
    TRY_STATUS(CountProgress(domain, state));
    return state;
  }
  if (Libvirt().virGetLastErrorCode() != VIR_ERR_NO_DOMAIN_BACKUP) return LibvirtFailure("libvirt");
  return LastEnd(domain, VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED);
}

}  // namespace

rt::Task<Result<DiskUser>> LibvirtHypervisor::FindDiskUser(std::string path) {
  std::function<Result<DiskUser>(virConnectPtr)> run =
      [path](virConnectPtr connection) -> Result<DiskUser> {
    virDomainPtr* handles = nullptr;
    const int count =
        Libvirt().virConnectListAllDomains(connection, &handles, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
    if (count < 0) return LibvirtFailure("list domains");
    const std::span<const virDomainPtr> domains(handles, static_cast<size_t>(count));
    Result<DiskUser> user = UserAmong(domains, path);
    for (const virDomainPtr domain : domains) Libvirt().virDomainFree(domain);
    free(handles);
    return user;
  };
  return Call<Result<DiskUser>>("libvirt.disk", std::move(run));
}

rt::Task<Status> LibvirtHypervisor::BeginBackup(DiskUser user, DiskFile target) {
  const std::string xml = BackupXml(user, target);
  return OnDomain("copy a disk of", user.domain, [xml](virDomainPtr domain) -> Status {
    // What is remembered of the end of an earlier one must not be taken for that of this one.
    TRY_STATUS(LastEnd(domain, 0).status());
    const int begun = Libvirt().virDomainBackupBegin(
        domain, xml.c_str(), nullptr, VIR_DOMAIN_BACKUP_BEGIN_REUSE_EXTERNAL);
    return begun == 0 ? OkStatus() : LibvirtFailure("libvirt");
  });
}

rt::Task<Result<BackupState>> LibvirtHypervisor::LookAtBackup(std::string domain) {
  std::function<Result<BackupState>(virConnectPtr)> run =
      [domain](virConnectPtr connection) -> Result<BackupState> {
    const std::string doing = "look at the copy of a disk of " + domain;
    const DomainHandle handle(Libvirt().virDomainLookupByName(connection, domain.c_str()));
    if (handle == nullptr) return LibvirtFailure(doing);
    Result<BackupState> state = StateOf(handle.get());
    if (!state.ok()) return state.status().Wrap(doing);
    return state;
  };
  return Call<Result<BackupState>>("libvirt.job", std::move(run));
}

rt::Task<Status> LibvirtHypervisor::AbortBackup(std::string domain) {
  return OnDomain("end the copy of", std::move(domain), [](virDomainPtr handle) -> Status {
    if (Libvirt().virDomainAbortJob(handle) == 0) return OkStatus();
    // It ended by itself in between.
    if (Libvirt().virGetLastErrorCode() == VIR_ERR_OPERATION_INVALID) return OkStatus();
    return LibvirtFailure("libvirt");
  });
}

}  // namespace berth::runtime
