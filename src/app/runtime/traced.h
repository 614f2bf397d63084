// SPDX-License-Identifier: Apache-2.0
// Libvirt, qemu-img and the fetching of images with a span around every call (span_log.h). Images
// know a machine by its uid, the others by its ID.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/process/span_log.h"
#include "runtime/machine/domain_text.h"
#include "runtime/machine/hypervisor.h"
#include "runtime/machine/machine_plan.h"
#include "runtime/volume/disks.h"
#include "runtime/volume/image_source.h"

namespace berth::app {

// Whose domain it is.
inline std::string MachineOfDomain(std::string_view domain) {
  const std::string prefix = runtime::DomainNameOf("");
  return std::string(domain.starts_with(prefix) ? domain.substr(prefix.size()) : domain);
}
// Whose disk it is: each machine has a folder.
inline std::string MachineOfDisk(const runtime::DiskFile& disk) {
  return std::filesystem::path(disk.path).parent_path().filename();
}

class TracedHypervisor final : public runtime::Hypervisor {
 public:
  // Both outlive this.
  TracedHypervisor(runtime::Hypervisor& inner, SpanLog& spans) : inner_(inner), spans_(spans) {}

  void Listen(Listener listener) override { inner_.Listen(std::move(listener)); }
  std::string Trouble() const override { return inner_.Trouble(); }
  rt::Task<Result<std::vector<runtime::Domain>>> List() override {
    return spans_.Around("libvirt.list", "", inner_.List());
  }
  rt::Task<Status> Define(std::string xml) override {
    std::string of = MachineOfDomain(runtime::DomainNameIn(xml));
    return spans_.Around("libvirt.define", std::move(of), inner_.Define(std::move(xml)));
  }
  rt::Task<Status> Undefine(std::string name) override {
    std::string of = MachineOfDomain(name);
    return spans_.Around("libvirt.undefine", std::move(of), inner_.Undefine(std::move(name)));
  }
  rt::Task<Status> Start(std::string name, runtime::StartMode mode) override {
    std::string of = MachineOfDomain(name);
    return spans_.Around("libvirt.start", std::move(of), inner_.Start(std::move(name), mode));
  }
  rt::Task<Status> Resume(std::string name) override {
    std::string of = MachineOfDomain(name);
    return spans_.Around("libvirt.resume", std::move(of), inner_.Resume(std::move(name)));
  }
  rt::Task<Status> PressPower(std::string name) override {
    std::string of = MachineOfDomain(name);
    return spans_.Around("libvirt.power", std::move(of), inner_.PressPower(std::move(name)));
  }
  rt::Task<Status> Destroy(std::string name) override {
    std::string of = MachineOfDomain(name);
    return spans_.Around("libvirt.destroy", std::move(of), inner_.Destroy(std::move(name)));
  }
  rt::Task<Status> AttachDevice(std::string name, std::string xml) override {
    std::string of = MachineOfDomain(name);
    return spans_.Around(
        "libvirt.attach", std::move(of), inner_.AttachDevice(std::move(name), std::move(xml)));
  }
  rt::Task<Status> DetachDevice(std::string name, std::string xml) override {
    std::string of = MachineOfDomain(name);
    return spans_.Around(
        "libvirt.detach", std::move(of), inner_.DetachDevice(std::move(name), std::move(xml)));
  }
  rt::Task<Result<runtime::DeviceElements>> LiveDevices(std::string name) override {
    std::string of = MachineOfDomain(name);
    return spans_.Around("libvirt.devices", std::move(of), inner_.LiveDevices(std::move(name)));
  }
  rt::Task<Status> ResizeDisk(std::string name, std::string target, int64_t bytes) override {
    std::string of = MachineOfDomain(name);
    return spans_.Around("libvirt.resize",
                         std::move(of),
                         inner_.ResizeDisk(std::move(name), std::move(target), bytes));
  }
  rt::Task<Status> SetSecret(std::string uuid,
                             std::string description,
                             std::string value) override {
    return spans_.Around(
        "libvirt.secret",
        "",
        inner_.SetSecret(std::move(uuid), std::move(description), std::move(value)));
  }
  rt::Task<Status> RemoveSecret(std::string uuid) override {
    return spans_.Around("libvirt.secret", "", inner_.RemoveSecret(std::move(uuid)));
  }
  // Asked for again and again, whatever else happens: not worth a span.
  rt::Task<Result<std::vector<runtime::DomainStatistics>>> Statistics() override {
    return inner_.Statistics();
  }
  rt::Task<Result<std::string>> Version() override { return inner_.Version(); }

 private:
  runtime::Hypervisor& inner_;
  SpanLog& spans_;
};

class TracedDisks final : public runtime::Disks {
 public:
  // Both outlive this.
  TracedDisks(runtime::Disks& inner, SpanLog& spans) : inner_(inner), spans_(spans) {}

  rt::Task<Status> Create(runtime::DiskFile target, int64_t bytes, std::string key) override {
    std::string of = MachineOfDisk(target);
    return spans_.Around(
        "qemu-img.create", std::move(of), inner_.Create(std::move(target), bytes, std::move(key)));
  }
  rt::Task<Status> Copy(runtime::DiskCopy copy) override {
    std::string of = MachineOfDisk(copy.target);
    return spans_.Around("qemu-img.copy", std::move(of), inner_.Copy(std::move(copy)));
  }
  rt::Task<Result<int64_t>> VirtualBytes(runtime::DiskFile disk) override {
    std::string of = MachineOfDisk(disk);
    return spans_.Around("qemu-img.size", std::move(of), inner_.VirtualBytes(std::move(disk)));
  }
  // Without a program.
  rt::Task<Result<int64_t>> ForeignVirtualBytes(runtime::DiskFile disk) override {
    return inner_.ForeignVirtualBytes(std::move(disk));
  }
  rt::Task<Result<runtime::Growth>> Grow(runtime::DiskFile disk, int64_t bytes) override {
    std::string of = MachineOfDisk(disk);
    return spans_.Around("qemu-img.grow", std::move(of), inner_.Grow(std::move(disk), bytes));
  }
  rt::Task<Status> Unlock(runtime::DiskFile disk, std::string key) override {
    std::string of = MachineOfDisk(disk);
    return spans_.Around(
        "qemu-img.unlock", std::move(of), inner_.Unlock(std::move(disk), std::move(key)));
  }

 private:
  runtime::Disks& inner_;
  SpanLog& spans_;
};

class TracedImages final : public runtime::ImageSource {
 public:
  // Both outlive this.
  TracedImages(runtime::ImageSource& inner, SpanLog& spans) : inner_(inner), spans_(spans) {}

  Status Check(std::string_view reference) const override { return inner_.Check(reference); }
  // Fetched, or found and verified.
  rt::Task<Result<image::ImageFiles>> Fetch(runtime::ImageRequest request) override {
    std::string of = request.uid;
    return spans_.Around("image.fetch", std::move(of), inner_.Fetch(std::move(request)));
  }
  bool SetPullSecret(const std::string& uid, std::string docker_config) override {
    return inner_.SetPullSecret(uid, std::move(docker_config));
  }
  rt::Task<Result<int64_t>> TakenBytes() override { return inner_.TakenBytes(); }

 private:
  runtime::ImageSource& inner_;
  SpanLog& spans_;
};

}  // namespace berth::app
