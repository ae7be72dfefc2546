//! What the kernel's tables say, against sockets that the test opened itself.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use yieldpoint_sample::{
    Sampler, Subject, TimeWaitSplit, open_sock_diag, time_wait_count, time_wait_split,
};
use yieldpoint_terms::SampleSeries;

/// Only bounds a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// A listener on a port that no TIME_WAIT entry of an earlier run names.
fn listener() -> TcpListener {
    let diag = open_sock_diag().unwrap();
    for _ in 0..100 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let split = time_wait_split(diag.as_fd(), port(&listener)).unwrap();
        if (split.client, split.target) == (0, 0) {
            return listener;
        }
    }
    panic!("every free port is named by a TIME_WAIT entry");
}

fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().unwrap().port()
}

/// Opens a connection; its two ends.
fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (target, _) = listener.accept().unwrap();
    (client, target)
}

/// Closes one end, waits until the other has seen it, closes the other.
fn close(first: TcpStream, mut second: TcpStream) {
    drop(first);
    assert_eq!(second.read(&mut [0; 1]).unwrap(), 0);
}

/// The split as soon as it has that many entries of the port; the last FIN may still be on its way.
fn split_of(port: u16, entries: u64) -> TimeWaitSplit {
    let diag = open_sock_diag().unwrap();
    let start = Instant::now();
    loop {
        let split = time_wait_split(diag.as_fd(), port).unwrap();
        if split.client + split.target >= entries || start.elapsed() > PATIENCE {
            return split;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn watch(port: u16, period_ns: u64) -> Sampler {
    let pid = std::process::id();
    let subject = Subject {
        client_pids: vec![pid],
        target_pid: None,
        net_pid: pid,
        client_cpus: vec![],
        target_cpus: vec![],
        port: Some(port),
        sock_diag: Some(open_sock_diag().unwrap()),
        target_net: None,
    };
    Sampler::start(subject, 0, period_ns).unwrap()
}

fn growth(series: &SampleSeries, metric: &str) -> i64 {
    let column = &series.columns[metric];
    column.last().unwrap().unwrap() - column[0].unwrap()
}

#[test]
fn time_wait_is_where_the_first_close_was() {
    let listener = listener();
    for _ in 0..50 {
        let (client, target) = connect(&listener);
        close(client, target);
    }
    let split = split_of(port(&listener), 50);
    assert_eq!(
        (split.client, split.target),
        (50, 0),
        "the client closed first"
    );
    for _ in 0..30 {
        let (client, target) = connect(&listener);
        close(target, client);
    }
    let split = split_of(port(&listener), 80);
    assert_eq!(
        (split.client, split.target),
        (50, 30),
        "then the target did"
    );
    // Seen from another port they are of other connections. Other tests may add, never remove.
    let diag = open_sock_diag().unwrap();
    assert!(time_wait_split(diag.as_fd(), 1).unwrap().other >= 80);
    assert!(time_wait_count(std::process::id()).unwrap() >= 80);
}

#[test]
fn a_dump_of_many_datagrams_is_whole() {
    // 32 KiB hold about 370 entries, so that 1,000 need several datagrams.
    let listener = listener();
    for _ in 0..1_000 {
        let (client, target) = connect(&listener);
        close(client, target);
    }
    let split = split_of(port(&listener), 1_000);
    assert_eq!((split.client, split.target), (1_000, 0));
}

#[test]
fn a_queue_that_nobody_accepts_is_counted() {
    let listener = listener();
    let sampler = watch(port(&listener), 3_600_000_000_000);
    sampler.row_now().unwrap();
    assert_eq!(sampler.live("listen_queue"), Some(0));
    let waiting: Vec<_> = (0..9)
        .map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap())
        .collect();
    // connect() returns before the last ACK is through, so the queue fills a moment later.
    let start = Instant::now();
    while sampler.live("listen_queue") != Some(9) && start.elapsed() < PATIENCE {
        sampler.row_now().unwrap();
    }
    assert_eq!(sampler.live("listen_queue"), Some(9));
    drop(listener);
    let series = sampler.finish();
    assert_eq!(series.peak("listen_queue"), Some(9));
    assert_eq!(
        *series.columns["listen_queue"].last().unwrap(),
        None,
        "nobody listens: missing, not 0"
    );
    drop(waiting);
}

#[test]
fn counters_grow_by_what_was_opened() {
    let listener = listener();
    let sampler = watch(port(&listener), 3_600_000_000_000);
    sampler.row_now().unwrap();
    let ends: Vec<_> = (0..40).map(|_| connect(&listener)).collect();
    let series = sampler.finish();
    // Other tests of this namespace may add to the counters.
    assert!(growth(&series, "tcp_active_opens") >= 40);
    assert!(growth(&series, "tcp_passive_opens") >= 40);
    let inuse = series.columns["sockets_inuse"].last().unwrap().unwrap();
    assert!(
        inuse >= 81,
        "40 connections with two ends and a listener, got {inuse}"
    );
    drop(ends);
}

#[test]
fn duplicates_of_a_socket_can_be_asked_at_the_same_time() {
    // Two owners of one socket, as the sampler and its caller may be: neither reads the other's answer.
    let listener = listener();
    for _ in 0..20 {
        let (client, target) = connect(&listener);
        close(client, target);
    }
    assert_eq!(split_of(port(&listener), 20).client, 20);
    let diag = open_sock_diag().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mine = diag.try_clone().unwrap();
                for _ in 0..50 {
                    let split = time_wait_split(mine.as_fd(), port(&listener)).unwrap();
                    assert_eq!((split.client, split.target), (20, 0));
                }
            });
        }
    });
}

#[test]
fn a_descriptor_that_is_not_of_sock_diag_is_an_error() {
    let (a, _b) = std::os::unix::net::UnixDatagram::pair().unwrap();
    // The request goes to the other end, and no answer comes: the bound on a hang ends it.
    let error = time_wait_split(a.as_fd(), 80).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}");
}

#[test]
fn a_namespace_of_nobody_is_an_error() {
    let error = time_wait_count(u32::MAX).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

/// The newest value of a metric as soon as it is wanted; the kernel may need a moment for the last packet.
fn live_until(sampler: &Sampler, metric: &str, wanted: impl Fn(i64) -> bool) -> i64 {
    let start = Instant::now();
    loop {
        sampler.row_now().unwrap();
        let value = sampler.live(metric).unwrap();
        if wanted(value) || start.elapsed() > PATIENCE {
            return value;
        }
    }
}

#[test]
fn states_are_those_of_both_ends() {
    // Other tests of this namespace have connections, too: the bounds are below, never above.
    let listener = listener();
    let sampler = watch(port(&listener), 3_600_000_000_000);
    let ends: Vec<_> = (0..40).map(|_| connect(&listener)).collect();
    assert!(live_until(&sampler, "sockets_established", |n| n >= 80) >= 80);
    // One end closes, the other does not hear of it.
    let (clients, targets): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
    drop(clients);
    assert!(live_until(&sampler, "sockets_fin_wait", |n| n >= 40) >= 40);
    assert!(live_until(&sampler, "sockets_close_wait", |n| n >= 40) >= 40);
    drop(targets);
}

#[test]
fn a_full_queue_has_a_limit_and_leaves_connects_without_an_answer() {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let socket = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap()
    };
    let listening = socket();
    let any = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0);
    rustix::net::bind(&listening, &any).unwrap();
    rustix::net::listen(&listening, 1).unwrap();
    let listener = TcpListener::from(listening);
    let sampler = watch(port(&listener), 3_600_000_000_000);
    // A limit of 1 lets 2 wait; the SYN of the others is dropped, and sent again a second later.
    let connects: Vec<_> = (0..6).map(|_| socket()).collect();
    for connect in &connects {
        let _ = rustix::net::connect(connect, &listener.local_addr().unwrap());
    }
    assert_eq!(live_until(&sampler, "listen_queue", |n| n == 2), 2);
    assert_eq!(sampler.live("listen_queue_limit"), Some(1));
    assert!(live_until(&sampler, "sockets_syn_sent", |n| n >= 3) >= 3);
}
