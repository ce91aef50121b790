#!/usr/bin/env bash
# Runs COMMAND as root in a small virtual machine with Soft-RoCE, on this machine's file system: programs run from where
# they were built, and what they write stays in the guest's memory. Emulated, without KVM: for what is right, never for
# what is fast. Boots in about 5 seconds.
#
#   guest.sh [-t SECONDS] [-n NETWORK] [-l PERCENT] -- COMMAND …
#
#   -n one            the adapter rxe0 on net0, 10.9.0.1: GID 0 is its IPv6 link-local address, GID 1 its IPv4 one
#   -n two            rxe0 and rxe1 at the ends of one wire: they reach each other by GID 0
#   -n none           no adapter, though the kernel has the drivers
#   -n first=SOCKET   rxe0, 10.9.0.1, on a wire to another guest, which is started with …
#   -n second=SOCKET  … rxe0, 10.9.0.2, and the same Unix socket, which the first one makes
#   -l PERCENT        so many packets are lost on the wire
#   -t SECONDS        the limit of COMMAND (120)
#
# What it prints, on both streams, and its exit status are those of COMMAND. 124: it ran past its limit. 125: the
# machine itself has failed, as is said on standard error. RONDO_TEST_NEEDS_RDMA=1 is set wherever there is an adapter.
set -euo pipefail
here=$(realpath "$(dirname "$0")")

fail() {
  echo "guest.sh: $1" >&2
  exit 125
}

limit=120 network=one loss=0
while getopts t:n:l: option; do
  case $option in
    t) limit=$OPTARG ;;
    n) network=$OPTARG ;;
    l) loss=$OPTARG ;;
    *) fail "usage: see the head of $0" ;;
  esac
done
shift $((OPTIND - 1))
(($#)) || fail "no command was given; usage: see the head of $0"
[[ $limit$loss =~ ^[0-9]+$ ]] || fail "-t and -l take whole numbers"
[[ $network =~ ^(one|two|none|(first|second)=.+)$ ]] || fail "-n takes one, two, none, first=SOCKET or second=SOCKET"
[[ $loss == 0 || ! $network =~ ^(one|none)$ ]] || fail "-l needs a wire: nothing is lost within one adapter"
for tool in qemu-system-x86_64:qemu-system-x86 xz:xz-utils ip:iproute2 rdma:iproute2; do
  command -v "${tool%:*}" >/dev/null || fail "${tool%:*} is missing: apt-get install --no-install-recommends ${tool#*:}"
done
image=$("$here/image.sh") || fail "there is no image"

run=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$run"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
mkdir "$run/vm"
mkfifo "$run/out" "$run/err"
echo "$limit" >"$run/vm/limit"

{
  printf 'cd %q || exit 125\n' "$PWD"
  [[ $network == none ]] || echo 'export RONDO_TEST_NEEDS_RDMA=1'
  printf 'exec'
  printf ' %q' "$@"
  echo
} >"$run/vm/command"

# Duplicate addresses are not looked for: the link-local one would come a second or two too late.
{
  echo 'ip link set lo up'
  echo 'for i in all default; do echo 0 >/proc/sys/net/ipv6/conf/$i/accept_dad; done'
  case $network in
    none) echo 'ends=' ;;
    one) echo 'ip link add net0 type dummy; ip addr add 10.9.0.1/24 dev net0; ends=0' ;;
    two) echo 'ip link add net0 type veth peer name net1; ends="0 1"' ;;
    first=*) echo 'ip link set eth0 name net0; ip addr add 10.9.0.1/24 dev net0; ends=0' ;;
    second=*) echo 'ip link set eth0 name net0; ip addr add 10.9.0.2/24 dev net0; ends=0' ;;
  esac
  echo 'for i in $ends; do ip link set net$i mtu 9000 up; done'
  [[ $loss == 0 ]] || echo "for i in \$ends; do tc qdisc add dev net\$i root netem loss $loss%; done"
  echo 'for i in $ends; do rdma link add rxe$i type rxe netdev net$i; done'
} >"$run/vm/setup"

machine=(-M q35 -cpu max -smp 2 -m 1024 -display none -nodefaults -no-user-config -no-reboot)
machine+=(-accel tcg,thread=multi,tb-size=256 -serial "file:$run/console")
machine+=(-kernel "$image/vmlinux" -initrd "$image/initrd")
machine+=(-append "console=ttyS0 panic=-1 oops=panic tsc=reliable preempt=full quiet")
share() { # TAG FOLDER OPTIONS
  machine+=(-fsdev "local,id=$1,path=${2//,/,,},security_model=none,multidevs=remap$3")
  machine+=(-device "virtio-9p-pci,fsdev=$1,mount_tag=$1")
}
share host / ,readonly=on
share vm "$run/vm" ''
machine+=(-device virtio-serial-pci)
for stream in out err; do
  machine+=(-chardev "file,id=$stream,path=$run/$stream" -device "virtserialport,chardev=$stream")
done
wire() { # SOCKET on|off MAC
  machine+=(-netdev "stream,id=wire,server=$2,addr.type=unix,addr.path=${1//,/,,}")
  machine+=(-device "virtio-net-pci,netdev=wire,host_mtu=9000,mac=$3")
}
case $network in
  first=*) wire "${network#*=}" on 52:54:00:00:00:01 ;;
  second=*)
    wire "${network#*=}" off 52:54:00:00:00:02
    for ((tries = 100; tries; --tries)); do
      [[ ! -S ${network#*=} ]] || break
      sleep 0.1
    done
    ;;
esac

cat "$run/out" &
readers=($!)
cat "$run/err" >&2 &
readers+=($!)
# A machine that does not even come up is ended too; and QEMU does not outlive this script, however that is ended.
setpriv --pdeathsig TERM timeout -k 5 $((limit + 90)) qemu-system-x86_64 "${machine[@]}" \
  </dev/null >"$run/qemu" 2>&1 &
wait $! || true
if [[ ! -s $run/vm/status ]]; then
  sleep 0.3
  tail -n 40 "$run/console" "$run/qemu" >&2 || true
  fail "the virtual machine ended without a result; the last lines of its console are above"
fi
wait "${readers[@]}"
status=$(<"$run/vm/status")
[[ $status != 124 ]] || echo "guest.sh: the command ran past $limit seconds" >&2
exit "$status"
