# SPDX-License-Identifier: Apache-2.0
"""Makes a Debian 12 machine out of packages: a kernel, an initramfs and a disk. Nothing is installed here.

apt works in a folder of its own, with its own list of architectures and an empty list of what is
installed, so that this machine's package database is neither asked nor touched."""
import gzip
import os
import pathlib
import re
import shutil
import subprocess

DEBIAN = {"aarch64": "arm64", "x86_64": "amd64"}
# what stands between this kernel and its disk (crc32c is asked for at run time: no file names it), and
# a socket family that guests may not have
MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "vsock_loopback")


def words(path, *when):
    """The packages of a list: those without a condition, and those of the conditions WHEN."""
    rows = [line.split("#")[0].split() for line in path.read_text().splitlines()]
    return [r[0] for r in rows if r and (len(r) == 1 or r[1] in when)]


class Apt:
    def __init__(self, folder, arch):
        self.arch, self.folder, self.debs = DEBIAN[arch], folder, folder / "debs"
        for d in ("lists/partial", "archives/partial", "debs"):
            (folder / d).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        self.options = [f"-oAPT::Architecture={self.arch}", "-oAPT::Architectures=", f"-oAPT::Architectures::={self.arch}",
                        f"-oDir::State={folder}", f"-oDir::State::lists={folder}/lists", f"-oDir::State::status={folder}/status",
                        f"-oDir::Cache={folder}", f"-oDir::Cache::archives={folder}/archives", "-oAPT::Sandbox::User=",
                        "-oDebug::NoLocking=1", "-oAPT::Install-Recommends=0", "-oAcquire::Languages=none", "-oAcquire::Retries=3",
                        "-oAPT::Update::Post-Invoke=", "-oDPkg::Post-Invoke=", "-oAPT::Keep-Downloaded-Packages=1"]

    def run(self, tool, *args, **more):
        return subprocess.run([tool, *self.options, *args], check=True, stdin=subprocess.DEVNULL, text=True, **more)

    def fetch(self, packages, kernel=True):
        """The packages, all that they depend on, and the kernel. A second call finds them there."""
        done = self.folder / "fetched"
        want = " ".join(packages)
        if done.exists() and done.read_text() == want:
            return sorted(self.debs.glob("*.deb"))
        done.unlink(missing_ok=True)  # what is cut short is not taken for whole
        shutil.rmtree(self.debs)
        self.debs.mkdir()
        self.run("apt-get", "-qq", "update")
        kernels = []
        if kernel:
            depends = self.run("apt-cache", "depends", f"linux-image-{self.arch}", stdout=subprocess.PIPE).stdout
            kernels = [re.search(r"Depends: (linux-image-\d\S+)", depends).group(1)]
        uris = self.run("apt-get", "-qq", "--print-uris", "-y", "install", *packages, stdout=subprocess.PIPE).stdout
        names = re.findall(r"^'[^']+' (\S+)_\S+_\S+\.deb ", uris, re.M)
        self.run("apt-get", "-qq", "download", *kernels, *names, cwd=self.debs)
        done.write_text(want)
        return sorted(self.debs.glob("*.deb"))


def unpack(debs, root):
    """What dpkg would put there, without running anything of it."""
    for d in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / d).mkdir(parents=True)
        (root / d).symlink_to("usr/" + d)
    for deb in debs:
        tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", root, "--keep-directory-symlink", "--exclude=./usr/share/doc", "--exclude=./usr/share/man",
                        "--exclude=./usr/share/locale", "--no-same-owner"], stdin=tar.stdout, check=True)
        if tar.wait() != 0:
            raise SystemExit(f"{deb.name} cannot be unpacked")


def kernel(debs, out):
    """The kernel alone."""
    deb = next(d for d in debs if d.name.startswith("linux-image-"))
    tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
    with open(out, "wb") as f:
        subprocess.run(["tar", "-x", "-O", "--wildcards", "./boot/vmlinuz-*"], stdin=tar.stdout, stdout=f, check=True)
    if tar.wait() != 0:
        raise SystemExit(f"{deb.name} cannot be unpacked")
    return out


def module_order(modules):
    """The files of MODULES and of what they need, needs first. What has no file is built in."""
    files = {p.stem.replace("-", "_"): p for p in modules.rglob("*.ko")}
    order = []

    def add(name):
        path = files.get(name.replace("-", "_"))
        if path is None or path in order:
            return
        needs = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
        for n in needs.group(1).decode().split(",") if needs else ():
            add(n)
        order.append(path)
    for name in MODULES:
        add(name)
    return order


def initramfs(root, init, out):
    """busybox, the disk's modules and INIT; what it holds is moved out of ROOT where the disk has no use for it."""
    work = out.parent / "initramfs"
    for d in ("usr/bin", "modules", "proc", "dev", "disk"):
        (work / d).mkdir(parents=True)
    for d in ("bin", "sbin", "usr/sbin"):
        (work / d).symlink_to("/usr/bin")
    shutil.copy2(root / "usr/bin/busybox", work / "usr/bin/busybox")
    for applet in ("sh", "mount", "umount", "cat", "insmod", "sleep", "poweroff", "switch_root"):
        (work / "usr/bin" / applet).symlink_to("busybox")
    order = module_order(root / "usr/lib/modules")
    for path in order:
        shutil.copy2(path, work / "modules" / path.name)
    (work / "modules/order").write_text("".join(p.name + "\n" for p in order))
    shutil.copy2(init, work / "init")
    names = "\n".join(str(p.relative_to(work)) for p in sorted(work.rglob("*")))
    archive = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=work, input=names.encode(), stdout=subprocess.PIPE, check=True).stdout
    out.write_bytes(gzip.compress(archive, 1))


def disk(root, out, free):
    """An image with FREE megabytes beyond what is in it."""
    shutil.rmtree(root / "usr/lib/modules", ignore_errors=True)
    megabytes = free + int(subprocess.run(["du", "-sm", root], check=True, stdout=subprocess.PIPE).stdout.split()[0])
    with open(out, "wb") as f:
        f.truncate(megabytes << 20)
    # in a user namespace of its own where we are not root: every file is to belong to root
    cmd = [] if os.geteuid() == 0 else ["unshare", "-r"]
    subprocess.run([*cmd, "/sbin/mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-E", "root_owner=0:0,lazy_itable_init=1",
                    "-d", root, out], check=True)


def alternatives(root):
    """What update-alternatives would link: awk, cc, and the libraries of linear algebra that numpy is linked with."""
    (root / "etc/alternatives").mkdir(exist_ok=True)
    links = [("usr/bin/awk", "awk", "usr/bin/mawk"), ("usr/bin/cc", "cc", "usr/bin/gcc")]
    for path in root.glob("usr/lib/*/*/lib*.so.3"):  # usr/lib/TRIPLET/blas/libblas.so.3, and so lapack
        if path.parent.name in ("blas", "lapack"):
            triplet = path.parents[1]
            links.append((str((triplet / path.name).relative_to(root)), f"{path.name}-{triplet.name}", str(path.relative_to(root))))
    for link, name, target in links:
        (root / link).unlink(missing_ok=True)
        (root / link).symlink_to("/etc/alternatives/" + name)
        (root / "etc/alternatives" / name).unlink(missing_ok=True)
        (root / "etc/alternatives" / name).symlink_to("/" + target)


def make(folder, debs, init, fill):
    """Kernel, initramfs and disk in FOLDER; FILL(root) adds what is to be tested."""
    root = folder / "root"
    root.mkdir()
    unpack(debs, root)
    kernel = folder / "vmlinuz"
    shutil.copy2(next(root.glob("boot/vmlinuz-*")), kernel)
    shutil.rmtree(root / "boot")
    initramfs(root, init, folder / "initrd.gz")
    for name in ("passwd", "group"):
        shutil.copy2(root / "usr/share/base-passwd" / (name + ".master"), root / "etc" / name)
    alternatives(root)
    (root / "etc/hostname").write_text("cordon-vm\n")
    certificates = root / "etc/ssl/certs/ca-certificates.crt"  # as update-ca-certificates makes it
    certificates.parent.mkdir(parents=True, exist_ok=True)
    certificates.write_bytes(b"".join(p.read_bytes() for p in sorted(root.glob("usr/share/ca-certificates/mozilla/*.crt"))))
    for d in ("proc", "sys", "dev", "tmp", "var/tmp", "root", "home", "usr/share/doc"):
        (root / d).mkdir(parents=True, exist_ok=True)
    for d in ("tmp", "var/tmp"):
        (root / d).chmod(0o1777)
    fill(root)
    disk(root, folder / "disk.img", 4096)  # sparse; runs keep 1 GB of it free
    shutil.rmtree(root)
    shutil.rmtree(folder / "initramfs")
    return kernel, folder / "initrd.gz", folder / "disk.img"
