#!/usr/bin/env bash
# Builds the guest's kernel and initramfs from packages of Debian, once, and prints the folder where they are.
#
# Debian's own kernel, because it has Soft-RoCE (rdma_rxe); the one for clouds has not. Neither it nor busybox is
# installed: they are downloaded and unpacked. Another recipe, another folder, so that no old image is taken.
set -euo pipefail
cd "$(dirname "$0")/../.."

modules="virtio_pci virtio_console virtio_net 9pnet_virtio 9p overlay crc32_generic rdma_rxe rdma_ucm ib_umad dummy veth
  sch_netem"

fail() {
  echo "tests/vm/image.sh: $1" >&2
  exit 1
}

unpack_packages() {
  local kernel
  kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9]\)/\1/p' | head -n 1)
  if [[ -z $kernel ]]; then
    apt-get update -qq
    kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9]\)/\1/p' | head -n 1)
  fi
  [[ -n $kernel ]] || fail "apt knows no linux-image-amd64: this needs the packages of Debian for amd64"
  mkdir deb tree
  (cd deb && apt-get download -qq -o APT::Sandbox::User=root "$kernel" busybox-static) ||
    fail "apt cannot download $kernel and busybox-static: is there a network, and is apt-get update recent?"
  for package in deb/*.deb; do dpkg-deb -x "$package" tree; done
}

# Unpacked here, the kernel starts seconds sooner than when it unpacks itself under emulation.
unpack_kernel() {
  local at
  at=$(LC_ALL=C grep -aboP '\xFD7zXZ\x00' tree/boot/vmlinuz-* | head -n 1 | cut -d: -f 1)
  # What follows the compressed kernel is not its own: head and xz stop before its end.
  { tail -c "+$((at + 1))" tree/boot/vmlinuz-* || true; } 2>/dev/null | xz -dc --single-stream >vmlinux
  [[ $(head -c 4 vmlinux) == $'\x7fELF' ]] || fail "the kernel could not be unpacked: is it compressed by xz no longer?"
}

pack_initramfs() {
  local busybox=$PWD/tree/bin/busybox version from to module
  version=$(basename tree/lib/modules/*)
  from=$PWD/tree/lib/modules/$version
  to=$PWD/files/lib/modules/$version
  mkdir -p files/{bin,sbin,proc,sys,dev} "$to"
  cp "$busybox" files/bin/
  ln -s ../bin/busybox files/sbin/modprobe
  install -m 755 "$1" files/init
  echo "$modules" >files/modules
  "$busybox" depmod -b tree "$version"
  for module in $modules; do
    grep "/$module\.ko:" "$from/modules.dep" || fail "the kernel $version has no module $module"
  done | tr -d : | tr ' ' '\n' | sort -u | (cd "$from" && xargs cp --parents -t "$to")
  cp "$from"/modules.{order,builtin} "$to/"
  "$busybox" depmod -b files "$version"
  (cd files && find . | "$busybox" cpio -o -H newc 2>/dev/null | gzip -1) >initrd
}

init=$PWD/tests/vm/init.sh
cache=$PWD/build/vm/image
image=$cache/$(cat tests/vm/image.sh "$init" | sha256sum | cut -c 1-16)
mkdir -p "$cache"
exec 9>"$cache/lock"
flock -w 300 9 || fail "another build has held $cache/lock for 5 minutes"
if [[ ! -d $image ]]; then
  rm -rf "${cache:?}"/*/ # other recipes, and builds that were interrupted
  building=$cache/building
  trap 'rm -rf "$building"' EXIT
  mkdir "$building"
  (
    cd "$building"
    unpack_packages
    unpack_kernel
    pack_initramfs "$init"
    rm -rf deb tree files
  ) >&2
  mv "$building" "$image"
fi
echo "$image"
