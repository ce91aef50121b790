# Installs what guests with RDMA need beyond what the other tests do, builds their image, and says how their programs
# are built. Sourced after packages.sh.
need g++ ibverbs-providers iproute2 libcli11-dev libfmt-dev libgtest-dev libibverbs-dev libssl-dev libucx-dev meson \
  ninja-build nlohmann-json3-dev pkg-config python3 qemu-system-x86 xz-utils
tests/vm/image.sh >/dev/null
# shellcheck disable=SC2034 # used where this is sourced
guests="-Doptimization=1 -Ddebug=false -Dunity=on -Dunity_size=4 -Ducx=enabled -Dverbs=enabled"
