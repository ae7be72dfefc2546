//! The second network namespace of a lab, and the link between the two.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::sched::{CloneFlags, setns, unshare};
use yieldpoint_lab::{Link, Network, Rate, Step};

use super::namespaces::LOOPBACK;
use super::netlink::{self, Request, Route, link};

/// Interface numbers of the two ends. Far from those that the kernel gives to interfaces of its own
/// in a fresh namespace; and not the same one, since a link whose ends have one number counts as an
/// end of its own peer, whose changes of state the kernel puts off by up to a second.
const CLIENT: i32 = 77;
const TARGET: i32 = 78;

/// Names of the two ends, for people who look (`nsenter … ip address`).
const CLIENT_NAME: &[u8] = b"to-target\0";
const TARGET_NAME: &[u8] = b"to-client\0";

/// Length of the network's part of the two addresses.
const PREFIX: u8 = 24;

// linux/veth.h, linux/pkt_sched.h, linux/if_link.h
const VETH_INFO_PEER: u16 = 1;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TCA_NETEM_LATENCY64: u16 = 10;
const TC_H_ROOT: u32 = u32::MAX;
/// The qdisc of an end has handle 1:, a second one hangs below its only class 1:1.
const FIRST: u32 = 0x1_0000;
const SECOND: u32 = 0x2_0000;
const BELOW_FIRST: u32 = 0x1_0001;

/// Packets that a delayed direction holds: 100 ms at 10 Gbit/s of full packets.
const DELAYED_PACKETS: u32 = 100_000;

/// The target's side of a lab.
pub struct TargetSide {
    /// its network namespace
    pub namespace: OwnedFd,
    /// a socket that asks about its sockets
    pub sock_diag: OwnedFd,
}

/// Makes the second network namespace with its `lo`, does something in it, and links it to the
/// present one, which this process is in again afterwards.
pub fn target_side<T>(
    speed: Link,
    inside: impl FnOnce() -> T,
) -> Result<(TargetSide, T), (Step, io::Error)> {
    let unsharing = |e: io::Error| (Step::Unshare, e);
    let linking = |e: io::Error| (Step::Veth, e);
    let here = present().map_err(unsharing)?;
    let client = Route::open().map_err(linking)?;

    unshare(CloneFlags::CLONE_NEWNET).map_err(|e| unsharing(e.into()))?;
    let namespace = present().map_err(unsharing)?;
    let target = Route::open().map_err(linking)?;
    let sock_diag = netlink::sock_diag().map_err(|e| (Step::SockDiag, e))?;
    target.set_up(LOOPBACK).map_err(|e| (Step::Loopback, e))?;
    let result = inside();
    enter(&here).map_err(|e| unsharing(e.into()))?;

    client.ask(pair(&namespace)).map_err(linking)?;
    let ends = [
        (&client, CLIENT, Network::VETH_CLIENT),
        (&target, TARGET, Network::VETH_TARGET),
    ];
    for (route, index, address) in ends {
        route.ask(give(index, address)).map_err(linking)?;
        route.set_up(index).map_err(linking)?;
    }
    // After both are up. The kernel lets the end that was the first to be up send nothing until it
    // has noticed, some time later, that there is a carrier; giving it a qdisc makes it look at once.
    for (route, index, _) in ends {
        slow_down(route, index, speed)?;
    }
    Ok((
        TargetSide {
            namespace,
            sock_diag,
        },
        result,
    ))
}

/// Moves this process into a network namespace.
pub fn enter(namespace: impl AsFd) -> nix::Result<()> {
    setns(namespace, CloneFlags::CLONE_NEWNET)
}

fn present() -> io::Result<OwnedFd> {
    File::open("/proc/self/ns/net").map(OwnedFd::from)
}

/// Makes the pair: one end here, its peer in the target's namespace.
fn pair(target: &OwnedFd) -> Request {
    new(libc::RTM_NEWLINK, &link(CLIENT, 0))
        .attribute(libc::IFLA_IFNAME, CLIENT_NAME)
        .nest(libc::IFLA_LINKINFO, |info| {
            info.attribute(libc::IFLA_INFO_KIND, b"veth")
                .nest(libc::IFLA_INFO_DATA, |data| {
                    data.nest(VETH_INFO_PEER, |peer| {
                        peer.raw(&link(TARGET, 0))
                            .attribute(libc::IFLA_IFNAME, TARGET_NAME)
                            .attribute(libc::IFLA_NET_NS_FD, &target.as_raw_fd().to_ne_bytes())
                    })
                })
        })
}

/// Gives an interface its address.
fn give(index: i32, address: Ipv4Addr) -> Request {
    // struct ifaddrmsg: family (AF_INET), length of prefix, flags, scope, index
    let mut m = [0; 8];
    m[0] = libc::AF_INET as u8;
    m[1] = PREFIX;
    m[4..8].copy_from_slice(&index.to_ne_bytes());
    new(libc::RTM_NEWADDR, &m)
        .attribute(libc::IFA_LOCAL, &address.octets())
        .attribute(libc::IFA_ADDRESS, &address.octets())
}

/// Gives an end its qdisc, which acts on what leaves it: each direction has its own.
fn slow_down(route: &Route, index: i32, speed: Link) -> Result<(), (Step, io::Error)> {
    let rate = |e| (Step::Rate, e);
    let delay = |e| (Step::Delay, e);
    match (speed.delay.0, speed.rate) {
        // What a veth end has by itself.
        (0, None) => route
            .ask(qdisc(index, TC_H_ROOT, FIRST, b"noqueue\0"))
            .map_err(|e| (Step::Veth, e)),
        (0, Some(r)) => route.ask(tbf(index, TC_H_ROOT, FIRST, r)).map_err(rate),
        (ns, r) => {
            route.ask(netem(index, ns)).map_err(delay)?;
            // The order of tc-netem(8): delayed first, so that the delay does not hold back the rate.
            r.map_or(Ok(()), |r| {
                route.ask(tbf(index, BELOW_FIRST, SECOND, r)).map_err(rate)
            })
        }
    }
}

fn new(kind: u16, body: &[u8]) -> Request {
    Request::new(kind, libc::NLM_F_CREATE | libc::NLM_F_EXCL, body)
}

fn qdisc(index: i32, parent: u32, handle: u32, kind: &[u8]) -> Request {
    // struct tcmsg: family and padding, index, handle, parent, info
    let mut m = [0; 20];
    m[4..8].copy_from_slice(&index.to_ne_bytes());
    m[8..12].copy_from_slice(&handle.to_ne_bytes());
    m[12..16].copy_from_slice(&parent.to_ne_bytes());
    new(libc::RTM_NEWQDISC, &m).attribute(libc::TCA_KIND, kind)
}

/// A token bucket: bytes a second, with a short burst and a queue of its own (tc-tbf(8)).
fn tbf(index: i32, parent: u32, handle: u32, rate: Rate) -> Request {
    let bytes_per_s = rate.bytes_per_s();
    let (burst, queue) = bucket(bytes_per_s);
    qdisc(index, parent, handle, b"tbf\0").nest(libc::TCA_OPTIONS, |options| {
        let options = options
            .attribute(TCA_TBF_PARMS, &tc_tbf_qopt(bytes_per_s, queue))
            .attribute(TCA_TBF_BURST, &burst.to_ne_bytes());
        // Above 4 GiB/s, where the field in the struct ends.
        if bytes_per_s > u64::from(u32::MAX) {
            options.attribute(TCA_TBF_RATE64, &bytes_per_s.to_ne_bytes())
        } else {
            options
        }
    })
}

/// Depth of the bucket and length of the queue before it, bytes. The burst is 4 ms of the rate, so
/// that the CPU may be busy elsewhere for a moment; the queue 50 ms, as in many a router, or what
/// TCP sends at once.
fn bucket(bytes_per_s: u64) -> (u32, u32) {
    /// some full packets, or nothing would ever fit
    const LEAST_BURST: u64 = 16 * 1024;
    const LEAST_QUEUE: u64 = 64 * 1024;
    let burst = (bytes_per_s / 250).max(LEAST_BURST);
    let queue = burst + (bytes_per_s / 20).max(LEAST_QUEUE);
    let cut = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    (cut(burst), cut(queue))
}

/// struct tc_tbf_qopt: rate, peak rate (none), queue in bytes, and two fields that TCA_TBF_BURST
/// stands in for.
fn tc_tbf_qopt(bytes_per_s: u64, queue: u32) -> [u8; 36] {
    /// TC_LINKLAYER_ETHERNET; without it the kernel wants a table of transmission times
    const ETHERNET: u8 = 1;
    let mut m = [0; 36];
    // struct tc_ratespec: cell_log, link layer, overhead, cell_align, mpu, rate
    m[1] = ETHERNET;
    let rate = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
    m[8..12].copy_from_slice(&rate.to_ne_bytes());
    m[24..28].copy_from_slice(&queue.to_ne_bytes());
    m
}

/// Holds every packet back for a constant time (tc-netem(8)).
fn netem(index: i32, delay_ns: u64) -> Request {
    // struct tc_netem_qopt: latency (in ticks: given in ns below), limit in packets, loss, gap,
    // duplicate, jitter
    let mut m = [0; 24];
    m[4..8].copy_from_slice(&DELAYED_PACKETS.to_ne_bytes());
    qdisc(index, TC_H_ROOT, FIRST, b"netem\0").nest(libc::TCA_OPTIONS, |options| {
        options
            .raw(&m)
            .attribute(TCA_NETEM_LATENCY64, &delay_ns.to_ne_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_and_queue_follow_the_rate() {
        let mbit = 1_000_000 / 8;
        // each row: bytes per second, burst, queue
        let table = [
            (mbit, 16_384, 81_920), // both at their least: a bucket of 500 B would pass no packet
            (100 * mbit, 50_000, 675_000), // 4 ms; 50 ms more
            (1_000 * mbit, 500_000, 6_750_000),
            (100_000 * mbit, 50_000_000, 675_000_000), // the greatest rate fits
        ];
        for (rate, burst, queue) in table {
            assert_eq!(bucket(rate), (burst, queue), "{rate}");
        }
    }

    #[test]
    fn the_struct_of_a_rate_saturates_where_its_field_ends() {
        let field = |rate: u64| {
            let m = tc_tbf_qopt(rate, 7);
            assert_eq!((m[1], &m[24..28]), (1, &7_u32.to_ne_bytes()[..]));
            u32::from_ne_bytes(m[8..12].try_into().unwrap())
        };
        assert_eq!(field(12_500_000), 12_500_000);
        assert_eq!(field(u64::from(u32::MAX) + 1), u32::MAX); // RATE64 has the rest
    }
}
