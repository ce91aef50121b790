#!/bin/busybox sh
# The first process of the guest. Its /vm is a folder of the host: /vm/setup makes the network, /vm/command is what to
# run, in the host's own file system, within the limit in seconds that /vm/limit holds; its exit status goes to
# /vm/status, what it prints to two virtio ports. Where /vm/status stays empty, the machine itself has failed.
/bin/busybox --install -s /bin
export PATH=/bin

power_off() {
  sync
  echo o >/proc/sysrq-trigger
  sleep 60
}

fail() {
  echo "guest: $*" >/dev/console
  power_off
}

share() { # TAG FOLDER OPTIONS
  mount -t 9p -o "trans=virtio,version=9p2000.L,msize=262144,$3" "$1" "$2" || fail "cannot mount $1"
}

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /host /vm /memory /new
mount -t devpts pts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs memory /memory
for module in $(cat /modules); do modprobe "$module" || fail "cannot load the module $module"; done

# The host's files below, never written: what the guest writes stays in its memory.
share host /host ro,cache=loose
share vm /vm rw
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work new /new || fail "no overlay"
mkdir -p /new/vm
mount -t tmpfs run /new/run
for folder in proc sys dev vm; do mount --rbind /$folder /new/$folder || fail "cannot bind /$folder"; done

# UCX's check of where a datagram came from reads a field of completions that only mlx5 fills in.
within() {
  chroot /new /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LANG=C.UTF-8 UCX_UD_VERBS_ETH_DGID_CHECK=n "$@"
}

ulimit -l unlimited
ulimit -c 0
within bash -e /vm/setup >/dev/console 2>&1 || fail "the network cannot be set up"
tries=50
while [ ! -c /dev/vport?p2 ]; do
  tries=$((tries - 1))
  [ $tries -gt 0 ] || fail "no ports for what the command prints"
  sleep 0.1
done
mkfifo /out /err
cat /out >$(echo /dev/vport?p1) &
out=$!
cat /err >$(echo /dev/vport?p2) &
err=$!
within timeout -k 5 "$(cat /vm/limit)" bash /vm/command </dev/null >/out 2>/err
status=$?
(sleep 3; kill $out $err) 2>/dev/null & # a process left behind may still hold the pipes
wait $out $err
echo $status >/vm/status
power_off
