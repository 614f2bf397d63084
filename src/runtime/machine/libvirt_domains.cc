// SPDX-License-Identifier: Apache-2.0
// What is asked of libvirt, each on a thread of the pool.
#include <fmt/core.h>

#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/strings.h"
#include "runtime/machine/domain_text.h"
#include "runtime/machine/domain_xml.h"
#include "runtime/machine/libvirt_error.h"
#include "runtime/machine/libvirt_handles.h"
#include "runtime/machine/libvirt_hypervisor.h"
#include "runtime/machine/libvirt_library.h"
#include "runtime/machine/libvirt_states.h"

namespace berth::runtime {
namespace {

bool LastErrorIs(int code) { return Libvirt().virGetLastErrorCode() == code; }

// NotFound if it went away meanwhile.
Result<Domain> Describe(virDomainPtr handle) {
  Domain domain;
  domain.name = Libvirt().virDomainGetName(handle);
  char uuid[VIR_UUID_STRING_BUFLEN] = {};
  if (Libvirt().virDomainGetUUIDString(handle, uuid) == 0) domain.uuid = uuid;
  int state = 0;
  int reason = 0;
  if (Libvirt().virDomainGetState(handle, &state, &reason, 0) < 0)
    return LibvirtFailure("look at a domain");
  domain.state = GuestStateOf(state);
  if (domain.state == GuestState::kOff) domain.off_reason = OffReasonOf(reason);
  if (domain.state == GuestState::kPaused) domain.pause_reason = PauseReasonOf(state, reason);
  const std::string uri(kMetadataNamespace);
  // What Define last said, also while the guest runs with what was there at its start.
  const TextHandle element(Libvirt().virDomainGetMetadata(
      handle, VIR_DOMAIN_METADATA_ELEMENT, uri.c_str(), VIR_DOMAIN_AFFECT_CONFIG));
  if (element != nullptr) {
    Result<std::string> record = RecordInMetadata(element.get());
    if (record.ok()) domain.record = *std::move(record);
  }
  return domain;
}

int64_t Number(const virTypedParameter& parameter) {
  switch (parameter.type) {
    case VIR_TYPED_PARAM_INT: return parameter.value.i;
    case VIR_TYPED_PARAM_UINT: return parameter.value.ui;
    case VIR_TYPED_PARAM_LLONG: return parameter.value.l;
    case VIR_TYPED_PARAM_ULLONG: return static_cast<int64_t>(parameter.value.ul);
    default: return 0;
  }
}

// "block.0.rd.bytes", "net.1.rx.bytes": one per device.
void Count(std::string_view field, int64_t value, DomainStatistics& statistics) {
  constexpr int64_t kKibi = 1024;
  if (field == "cpu.time") statistics.cpu_time = Duration::Micros(value / 1000);
  if (field == "balloon.rss") statistics.memory_bytes = value * kKibi;
  if (field.starts_with("block.")) {
    if (field.ends_with(".rd.bytes")) statistics.disk_read_bytes += value;
    if (field.ends_with(".wr.bytes")) statistics.disk_written_bytes += value;
    // Not "allocation", which counts from the guest's start.
    if (field.ends_with(".physical")) statistics.disk_bytes += value;
  }
  if (field.starts_with("net.")) {
    if (field.ends_with(".rx.bytes")) statistics.network_received_bytes += value;
    if (field.ends_with(".tx.bytes")) statistics.network_sent_bytes += value;
  }
}

std::string VersionText(unsigned long number) {
  constexpr unsigned long kMajor = 1'000'000;
  constexpr unsigned long kMinor = 1'000;
  return fmt::format("{}.{}.{}", number / kMajor, number / kMinor % kMinor, number % kMinor);
}

}  // namespace

rt::Task<Status> LibvirtHypervisor::OnDomain(std::string_view what,
                                             std::string name,
                                             std::function<Status(_virDomain*)> job) {
  std::function<Status(virConnectPtr)> run = [what, name, job](virConnectPtr connection) -> Status {
    const DomainHandle domain(Libvirt().virDomainLookupByName(connection, name.c_str()));
    if (domain == nullptr) return LibvirtFailure(fmt::format("{} {}", what, name));
    return job(domain.get()).Wrap(fmt::format("{} {}", what, name));
  };
  return Call<Status>(what, std::move(run));
}

rt::Task<Result<std::vector<Domain>>> LibvirtHypervisor::List() {
  std::function<Result<std::vector<Domain>>(virConnectPtr)> run =
      [](virConnectPtr connection) -> Result<std::vector<Domain>> {
    virDomainPtr* handles = nullptr;
    const int count = Libvirt().virConnectListAllDomains(connection, &handles, 0);
    if (count < 0) return LibvirtFailure("list domains");
    std::vector<Domain> domains;
    Status failed;
    for (const virDomainPtr handle : std::span(handles, static_cast<size_t>(count))) {
      const DomainHandle owned(handle);
      Result<Domain> domain = Describe(handle);
      if (domain.ok()) {
        domains.push_back(*std::move(domain));
      } else if (!domain.status().Is(Reason::kNotFound)) {
        failed = domain.status();
      }
    }
    free(handles);
    if (!failed.ok()) return failed;
    return domains;
  };
  return Call<Result<std::vector<Domain>>>("libvirt.list", std::move(run));
}

rt::Task<Status> LibvirtHypervisor::Define(std::string xml) {
  std::function<Status(virConnectPtr)> run = [xml](virConnectPtr connection) -> Status {
    const DomainHandle domain(
        Libvirt().virDomainDefineXMLFlags(connection, xml.c_str(), VIR_DOMAIN_DEFINE_VALIDATE));
    return domain != nullptr ? OkStatus() : LibvirtFailure("define " + DomainNameIn(xml));
  };
  return Call<Status>("libvirt.define", std::move(run));
}

rt::Task<Status> LibvirtHypervisor::Undefine(std::string name) {
  const auto undefine = [](virDomainPtr domain) -> Status {
    if (Libvirt().virDomainIsActive(domain) == 1) return Conflict("it runs");
    constexpr unsigned kEverything =
        VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA |
        VIR_DOMAIN_UNDEFINE_NVRAM | VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA;
    if (Libvirt().virDomainUndefineFlags(domain, kEverything) == 0) return OkStatus();
    return LibvirtFailure("libvirt");
  };
  const Status undefined = co_await OnDomain("undefine", std::move(name), undefine);
  co_return undefined.Is(Reason::kNotFound) ? OkStatus() : undefined;
}

rt::Task<Status> LibvirtHypervisor::Start(std::string name, StartMode mode) {
  const unsigned flags = mode == StartMode::kHeld ? VIR_DOMAIN_START_PAUSED : VIR_DOMAIN_NONE;
  return OnDomain("start", std::move(name), [flags](virDomainPtr domain) -> Status {
    if (Libvirt().virDomainIsActive(domain) == 1) return OkStatus();
    if (Libvirt().virDomainCreateWithFlags(domain, flags) == 0) return OkStatus();
    return LibvirtFailure("libvirt");
  });
}

rt::Task<Status> LibvirtHypervisor::Resume(std::string name) {
  return OnDomain("resume", std::move(name), [](virDomainPtr domain) -> Status {
    if (Libvirt().virDomainResume(domain) == 0) return OkStatus();
    Status failure = LibvirtFailure("libvirt");
    int state = 0;
    const bool is_known = Libvirt().virDomainGetState(domain, &state, nullptr, 0) == 0;
    return is_known && state == VIR_DOMAIN_RUNNING ? OkStatus() : failure;  // it runs already
  });
}

rt::Task<Status> LibvirtHypervisor::PressPower(std::string name) {
  return OnDomain("shut down", std::move(name), [](virDomainPtr domain) -> Status {
    const int pressed =
        Libvirt().virDomainShutdownFlags(domain, VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN);
    return pressed == 0 ? OkStatus() : LibvirtFailure("libvirt");
  });
}

rt::Task<Status> LibvirtHypervisor::Destroy(std::string name) {
  return OnDomain("destroy", std::move(name), [](virDomainPtr domain) -> Status {
    if (Libvirt().virDomainIsActive(domain) == 0 || Libvirt().virDomainDestroy(domain) == 0)
      return OkStatus();
    // It ended by itself in between.
    if (LastErrorIs(VIR_ERR_OPERATION_INVALID)) return OkStatus();
    return LibvirtFailure("libvirt");
  });
}

rt::Task<Status> LibvirtHypervisor::AttachDevice(std::string name, std::string xml) {
  return OnDomain("attach to", std::move(name), [xml](virDomainPtr domain) -> Status {
    const int done =
        Libvirt().virDomainAttachDeviceFlags(domain, xml.c_str(), VIR_DOMAIN_AFFECT_LIVE);
    return done == 0 ? OkStatus() : LibvirtFailure("libvirt");
  });
}

rt::Task<Status> LibvirtHypervisor::DetachDevice(std::string name, std::string xml) {
  return OnDomain("detach from", std::move(name), [xml](virDomainPtr domain) -> Status {
    const int done =
        Libvirt().virDomainDetachDeviceFlags(domain, xml.c_str(), VIR_DOMAIN_AFFECT_LIVE);
    return done == 0 ? OkStatus() : LibvirtFailure("libvirt");
  });
}

rt::Task<Result<DeviceElements>> LibvirtHypervisor::LiveDevices(std::string name) {
  std::function<Result<DeviceElements>(virConnectPtr)> run =
      [name](virConnectPtr connection) -> Result<DeviceElements> {
    const std::string doing = "look at " + name;
    const DomainHandle domain(Libvirt().virDomainLookupByName(connection, name.c_str()));
    if (domain == nullptr) return LibvirtFailure(doing);
    if (Libvirt().virDomainIsActive(domain.get()) == 0)
      return Conflict(doing + ": it does not run");
    const TextHandle xml(Libvirt().virDomainGetXMLDesc(domain.get(), 0));
    if (xml == nullptr) return LibvirtFailure(doing);
    return DevicesIn(xml.get());
  };
  return Call<Result<DeviceElements>>("libvirt.look", std::move(run));
}

rt::Task<Status> LibvirtHypervisor::ResizeDisk(std::string name,
                                               std::string target,
                                               int64_t bytes) {
  return OnDomain("resize a disk of", std::move(name), [target, bytes](virDomainPtr domain) {
    const int done = Libvirt().virDomainBlockResize(domain,
                                                    target.c_str(),
                                                    static_cast<unsigned long long>(bytes),
                                                    VIR_DOMAIN_BLOCK_RESIZE_BYTES);
    return done == 0 ? OkStatus() : LibvirtFailure("disk " + target);
  });
}

rt::Task<Status> LibvirtHypervisor::SetSecret(std::string uuid,
                                              std::string description,
                                              std::string value) {
  const std::string xml = SecretXml(uuid, description);
  std::function<Status(virConnectPtr)> run = [xml, value](virConnectPtr connection) -> Status {
    const SecretHandle secret(Libvirt().virSecretDefineXML(connection, xml.c_str(), 0));
    if (secret == nullptr) return LibvirtFailure("define a secret");
    const auto* const bytes = reinterpret_cast<const unsigned char*>(value.data());
    const int done = Libvirt().virSecretSetValue(secret.get(), bytes, value.size(), 0);
    return done == 0 ? OkStatus() : LibvirtFailure("set a secret");
  };
  return Call<Status>("libvirt.secret", std::move(run));
}

rt::Task<Status> LibvirtHypervisor::RemoveSecret(std::string uuid) {
  std::function<Status(virConnectPtr)> run = [uuid](virConnectPtr connection) -> Status {
    const SecretHandle secret(Libvirt().virSecretLookupByUUIDString(connection, uuid.c_str()));
    const bool done = secret == nullptr ? LastErrorIs(VIR_ERR_NO_SECRET)
                                        : Libvirt().virSecretUndefine(secret.get()) == 0;
    return done ? OkStatus() : LibvirtFailure("remove a secret");
  };
  return Call<Status>("libvirt.secret", std::move(run));
}

rt::Task<Result<std::vector<DomainStatistics>>> LibvirtHypervisor::Statistics() {
  std::function<Result<std::vector<DomainStatistics>>(virConnectPtr)> run =
      [](virConnectPtr connection) -> Result<std::vector<DomainStatistics>> {
    virDomainStatsRecordPtr* records = nullptr;
    constexpr unsigned kWhat = VIR_DOMAIN_STATS_CPU_TOTAL | VIR_DOMAIN_STATS_BALLOON |
                               VIR_DOMAIN_STATS_BLOCK | VIR_DOMAIN_STATS_INTERFACE;
    // A guest whose monitor hangs is left out of its block counters rather than waited for.
    constexpr unsigned kHow =
        VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE | VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT;
    const int count = Libvirt().virConnectGetAllDomainStats(connection, kWhat, &records, kHow);
    if (count < 0) return LibvirtFailure("count what guests do");
    std::vector<DomainStatistics> all;
    for (const virDomainStatsRecordPtr record : std::span(records, static_cast<size_t>(count))) {
      DomainStatistics& statistics = all.emplace_back();
      statistics.name = Libvirt().virDomainGetName(record->dom);
      const std::span parameters(record->params, static_cast<size_t>(record->nparams));
      for (const virTypedParameter& one : parameters) Count(one.field, Number(one), statistics);
    }
    Libvirt().virDomainStatsRecordListFree(records);
    return all;
  };
  return Call<Result<std::vector<DomainStatistics>>>("libvirt.statistics", std::move(run));
}

rt::Task<Result<std::string>> LibvirtHypervisor::Version() {
  std::function<Result<std::string>(virConnectPtr)> run =
      [](virConnectPtr connection) -> Result<std::string> {
    unsigned long of_qemu = 0;
    unsigned long of_libvirt = 0;
    if (Libvirt().virConnectGetVersion(connection, &of_qemu) < 0 ||
        Libvirt().virConnectGetLibVersion(connection, &of_libvirt) < 0) {
      return LibvirtFailure("ask for versions");
    }
    return fmt::format("QEMU {}, libvirt {}", VersionText(of_qemu), VersionText(of_libvirt));
  };
  return Call<Result<std::string>>("libvirt.version", std::move(run));
}

}  // namespace berth::runtime
