// SPDX-License-Identifier: Apache-2.0
// What the volume runtime does with the real qemu-img: content, keys, limits, full disks, hostile
// images.
#include "runtime/volume/qemu_disks.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "runtime/volume/volume_world.h"

namespace berth::runtime {
namespace {

constexpr const char* kQemuImg = "/usr/bin/qemu-img";
constexpr const char* kQemuIo = "/usr/bin/qemu-io";

class QemuDisksTest : public testing::Test {
 protected:
  rt::ProcessEnd Program(std::vector<std::string> argv, std::vector<std::string> secrets = {}) {
    rt::ProcessRequest request;
    request.argv = std::move(argv);
    request.secrets = std::move(secrets);
    request.limit = Duration::Minutes(2);
    auto end = loop_.Await(processes_.Run(std::move(request)));
    CHECK(end.ok()) << end.status();
    return *std::move(end);
  }
  // Commands of qemu-io on a disk; true if all went well.
  bool Io(const std::string& path, const std::string& format, const std::string& command) {
    const rt::ProcessEnd end = Program({kQemuIo, "-f", format, "-c", command, path});
    return end.ok() && end.output.find("Pattern verification failed") == std::string::npos;
  }
  bool LuksIo(const std::string& path, const std::string& key, const std::string& command) {
    const rt::ProcessEnd end =
        Program({kQemuIo,
                 "--object",
                 "secret,id=k,file=/dev/fd/3",
                 "--image-opts",
                 "-c",
                 command,
                 "driver=luks,key-secret=k,file.driver=file,file.filename=" + path},
                {key});
    return end.ok() && end.output.find("Pattern verification failed") == std::string::npos;
  }
  std::string MakeImage(const std::string& name, std::vector<std::string> options) {
    std::filesystem::create_directories(world_.images());
    const std::string path = world_.images() + "/" + name;
    std::vector<std::string> argv = {kQemuImg, "create", "-q"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.insert(argv.end(), {path, "1M"});
    const rt::ProcessEnd end = Program(std::move(argv));
    CHECK(end.ok()) << end.errors;
    return path;
  }

  rt::LoopThread loop_{"tools"};
  rt::ThreadPool pool_{{.threads = 1, .queue_max = 8, .name = "tools"}};
  rt::ChildProcesses processes_{pool_};
  VolumeWorld world_{WorldDisks::kQemu};
};

TEST_F(QemuDisksTest, ADiskIsMadeSparseGrownAndKeepsItsContent) {
  const iri::Volume volume = world_.Available(world_.Wanted("u-1", 32 * kMiB));
  const std::string path = VolumeWorld::PathOf(volume);
  EXPECT_LT(std::filesystem::file_size(path), 2U << 20);
  ASSERT_TRUE(Io(path, "qcow2", "write -P 0x11 0 1M"));
  ASSERT_EQ(world_.Await(world_.host().ExpandVolume(volume.metadata.id, 48 * kMiB)), OkStatus());
  ASSERT_TRUE(iri::Eventually(world_, [&] {
    return iri::GetVolume(world_, volume.metadata.id)->status.storage_bytes == 48 * kMiB;
  }));
  EXPECT_TRUE(Io(path, "qcow2", "read -P 0x11 0 1M"));
  EXPECT_TRUE(Io(path, "qcow2", "read -P 0 47M 1M"));
  EXPECT_EQ(world_.Await(world_.host().DeleteVolume(volume.metadata.id)), OkStatus());
  EXPECT_TRUE(world_.IsGone(volume.metadata.id));
  EXPECT_TRUE(world_.Files().empty());
}

TEST_F(QemuDisksTest, SnapshotRestoreAndCloneCompareEqual) {
  for (const std::string class_name : {"fast", "plain"}) {
    iri::Volume wanted = world_.Wanted("u-" + class_name, 4 * kMiB);
    wanted.spec.class_name = class_name;
    const iri::Volume source = world_.Available(wanted);
    const std::string format = source.status.access.attributes.at("format");
    ASSERT_TRUE(Io(VolumeWorld::PathOf(source), format, "write -P 0x22 1M 1M"));
    const auto snapshot = world_.Snapshot(source.metadata.id, "s-" + class_name);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    ASSERT_TRUE(world_.SnapshotBecomes(snapshot->metadata.id, iri::SnapshotState::kReady))
        << world_.Events();
    ASSERT_TRUE(Io(VolumeWorld::PathOf(source), format, "write -P 0x33 1M 1M"));
    iri::Volume restored = world_.Wanted("r-" + class_name, 8 * kMiB);
    restored.spec.snapshot_id = snapshot->metadata.id;
    const iri::Volume old = world_.Available(restored);
    EXPECT_TRUE(Io(VolumeWorld::PathOf(old), "qcow2", "read -P 0x22 1M 1M"));
    EXPECT_TRUE(Io(VolumeWorld::PathOf(old), "qcow2", "read -P 0 7M 1M"));
    iri::Volume clone = world_.Wanted("c-" + class_name, 4 * kMiB);
    clone.spec.snapshot_id = source.metadata.id;
    clone.spec.class_name = "plain";
    EXPECT_TRUE(Io(VolumeWorld::PathOf(world_.Available(clone)), "raw", "read -P 0x33 1M 1M"));
  }
}

TEST_F(QemuDisksTest, AnEncryptedDiskOpensWithItsKeyOnlyAndGrowsWithoutIt) {
  iri::Volume wanted = world_.Wanted("u-1", 2 * kMiB);
  wanted.spec.encryption = {{"encryptionKey", "s3cret, with=commas"}};
  const iri::Volume volume = world_.Available(wanted);
  const std::string path = VolumeWorld::PathOf(volume);
  ASSERT_TRUE(LuksIo(path, "s3cret, with=commas", "write -P 0x44 0 1M"));
  EXPECT_FALSE(LuksIo(path, "wrong", "read 0 1M"));
  EXPECT_EQ(ReadWhole(path).find(std::string(64, '\x44')), std::string::npos) << "in the clear";

  world_.Restart();
  ASSERT_EQ(world_.Await(world_.host().ExpandVolume(volume.metadata.id, 4 * kMiB)), OkStatus());
  ASSERT_TRUE(iri::Eventually(world_, [&] {
    return iri::GetVolume(world_, volume.metadata.id)->status.storage_bytes == 4 * kMiB;
  })) << world_.Events();
  EXPECT_TRUE(LuksIo(path, "s3cret, with=commas", "read -P 0x44 0 1M"));
  EXPECT_TRUE(LuksIo(path, "s3cret, with=commas", "write -P 0x45 3M 1M"));

  const auto snapshot = world_.Snapshot(volume.metadata.id, "s-1");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_TRUE(world_.SnapshotBecomes(snapshot->metadata.id, iri::SnapshotState::kReady));
  iri::Volume restored = world_.Wanted("u-2", 4 * kMiB);
  restored.spec.snapshot_id = snapshot->metadata.id;
  const iri::Volume copy = world_.Available(restored);
  EXPECT_TRUE(LuksIo(VolumeWorld::PathOf(copy), "s3cret, with=commas", "read -P 0x45 3M 1M"));

  const DiskFile disk = {.path = path, .format = DiskFormat::kLuks};
  EXPECT_EQ(world_.Await(world_.qemu().Unlock(disk, "s3cret, with=commas")), OkStatus());
  EXPECT_EQ(world_.Await(world_.qemu().Unlock(disk, "wrong")).reason(), Reason::kForbidden);
}

TEST_F(QemuDisksTest, AnImageBecomesAnEncryptedDisk) {
  const std::string image = MakeImage("base.qcow2", {"-f", "qcow2"});
  ASSERT_TRUE(Io(image, "qcow2", "write -P 0x55 0 512k"));
  iri::Volume wanted = world_.Wanted("u-1", 3 * kMiB);
  wanted.spec.image = "base.qcow2";
  wanted.spec.encryption = {{"encryptionKey", "key"}};
  const iri::Volume volume = world_.Available(wanted);
  EXPECT_TRUE(LuksIo(VolumeWorld::PathOf(volume), "key", "read -P 0x55 0 512k"));
  EXPECT_EQ(volume.status.storage_bytes, 3 * kMiB);
}

TEST_F(QemuDisksTest, P9_HostileImagesAreRefusedBeforeAnyProgramReadsThem) {
  MakeImage("backing.qcow2", {"-f", "qcow2", "-b", "/etc/passwd", "-F", "raw", "-u"});
  MakeImage("data.qcow2",
            {"-f", "qcow2", "-o", "data_file=" + world_.images() + "/victim.raw,data_file_raw=on"});
  world_.temporary().Write("images/text.qcow2", "just text");
  const struct {
    std::string image;
    std::string says;
  } kCases[] = {{"backing.qcow2", "backing file"},
                {"data.qcow2", "external data file"},
                {"text.qcow2", "not a qcow2"}};
  for (const auto& [image, says] : kCases) {
    iri::Volume wanted = world_.Wanted("u-" + image, 2 * kMiB);
    wanted.spec.image = image;
    const auto made = world_.Create(wanted);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE(world_.BecomesState(made->metadata.id, iri::VolumeState::kError)) << image;
    EXPECT_NE(world_.Events().find("Refused: image \"" + image), std::string::npos);
    EXPECT_NE(world_.Events().find(says), std::string::npos) << world_.Events();
  }
}

TEST_F(QemuDisksTest, P9_ARawImageThatLooksLikeQcow2StaysRaw) {
  const std::string hostile =
      MakeImage("backing.qcow2", {"-f", "qcow2", "-b", "/etc/passwd", "-F", "raw", "-u"});
  std::filesystem::rename(hostile, world_.images() + "/guest.raw");
  iri::Volume wanted = world_.Wanted("u-1", 2 * kMiB);
  wanted.spec.class_name = "plain";
  wanted.spec.image = "guest.raw";
  const iri::Volume volume = world_.Available(wanted);
  EXPECT_TRUE(ReadWhole(VolumeWorld::PathOf(volume)).starts_with("QFI\xfb"));
  const auto snapshot = world_.Snapshot(volume.metadata.id, "s-1");
  ASSERT_TRUE(world_.SnapshotBecomes(snapshot->metadata.id, iri::SnapshotState::kReady));
  iri::Volume restored = world_.Wanted("u-2", 2 * kMiB);
  restored.spec.class_name = "plain";
  restored.spec.snapshot_id = snapshot->metadata.id;
  EXPECT_EQ(ReadWhole(VolumeWorld::PathOf(world_.Available(restored))),
            ReadWhole(VolumeWorld::PathOf(volume)));
}

TEST_F(QemuDisksTest, ADiskInUseIsNotCopiedAndNotGrownBesideItsGuest) {
  const iri::Volume volume = world_.Available(world_.Wanted("u-1"));
  const DiskFile disk = {.path = VolumeWorld::PathOf(volume), .format = DiskFormat::kQcow2};
  rt::ProcessRequest guest;
  guest.argv = {kQemuIo, "-f", "qcow2", "-c", "write 0 64k", "-c", "sleep 60000", disk.path};
  guest.limit = Duration::Minutes(2);
  rt::LoopThread guest_loop("guest");
  rt::ThreadPool guest_pool({.threads = 1, .queue_max = 1, .name = "guest"});
  rt::ChildProcesses guests(guest_pool);
  rt::TaskScope scope(guest_loop.loop());
  const auto start = [](rt::TaskScope* in,
                        rt::ChildProcesses* runner,
                        rt::ProcessRequest request) -> rt::Task<Status> {
    const auto run = [](rt::ChildProcesses* processes,
                        rt::ProcessRequest what) -> rt::Task<Status> {
      CO_TRY_STATUS(co_await processes->Run(std::move(what)));
      co_return OkStatus();
    };
    in->Spawn("guest", run(runner, std::move(request)));
    co_return OkStatus();
  };
  ASSERT_EQ(guest_loop.Await(start(&scope, &guests, guest)), OkStatus());
  const int64_t target = 2 * kMiB;
  DiskCopy copy;
  copy.source = disk;
  copy.target = {.path = world_.temporary().Sub("copy"), .format = DiskFormat::kQcow2};
  copy.bytes = kMiB;
  EXPECT_TRUE(iri::Eventually(
      world_, [&] { return world_.Await(world_.qemu().Copy(copy)).Is(Reason::kConflict); }));
  EXPECT_EQ(*world_.Await(world_.qemu().Grow(disk, target)), Growth::kInUse);
  EXPECT_EQ(*world_.Await(world_.qemu().VirtualBytes(disk)), kMiB);
  ASSERT_EQ(guest_loop.Await(scope.Close()), OkStatus());
  EXPECT_EQ(*world_.Await(world_.qemu().Grow(disk, target)), Growth::kDone);
  EXPECT_EQ(*world_.Await(world_.qemu().VirtualBytes(disk)), target);
}

TEST_F(QemuDisksTest, AMissingProgramIsNamed) {
  QemuDisks::Options options;
  options.qemu_img = "/no/such/qemu-img";
  QemuDisks disks(processes_, pool_, options);
  const auto version = loop_.Await(disks.Version());
  EXPECT_NE(version.status().message().find("/no/such/qemu-img"), std::string_view::npos)
      << version.status();
  EXPECT_TRUE(world_.Await(world_.qemu().Version())->starts_with("qemu-img version"));
}

// A file system of its own, if we may mount one.
class SmallFileSystem {
 public:
  SmallFileSystem() {
    mounted_ = mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=8m,mode=0700") == 0;
  }
  ~SmallFileSystem() {
    if (mounted_) umount2(folder_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
  bool mounted_ = false;
};

TEST(QemuDisksFull, AFullFileSystemIsRefusedClearlyAndRecoversWhenThereIsRoom) {
  const SmallFileSystem small;
  if (!small.mounted()) GTEST_SKIP() << "only root mounts a file system";
  VolumeWorld world(WorldDisks::kQemu, small.folder().Sub("disks"));
  const auto full = world.Create(world.Wanted("u-0", 20 * kMiB));
  EXPECT_EQ(full.status().reason(), Reason::kTooManyRequests) << full.status();
  EXPECT_NE(full.status().message().find("the file system has"), std::string_view::npos);

  // Overcommitted, the room is gone only when it is written.
  world.options.promise = Promise::kOvercommit;
  world.Restart();
  iri::Volume wanted = world.Wanted("u-1", 6 * kMiB);
  wanted.spec.class_name = "plain";
  wanted.spec.image = "six.raw";
  const auto made = world.Create(wanted);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(world.BecomesState(made->metadata.id, iri::VolumeState::kError));
  small.folder().Write("hog", std::string(4 << 20, 'h'));
  world.temporary().Write("images/six.raw", std::string(6 << 20, 'x'));
  EXPECT_TRUE(iri::Eventually(world, [&] {
    return world.Events().find("NoRoom") != std::string::npos;
  })) << world.Events();
  std::filesystem::remove(small.folder().Sub("hog"));
  const iri::Volume there = world.Available(wanted);
  EXPECT_TRUE(ReadWhole(VolumeWorld::PathOf(there)).starts_with("xxx"));
}

}  // namespace
}  // namespace berth::runtime
