//! Measures what sampling costs on this machine: CPU time of the sampler's thread at ten rows a second,
//! while the kernel holds as many TIME_WAIT entries as there are ephemeral ports.
//!
//! `cost [--json] [--seconds N] [--time-wait N] [--threads N]`. It moves into a network namespace of its
//! own, so that nothing else is counted and nothing is left; where that is refused it uses loopback as
//! it is, and says so.

use std::error::Error;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::thread::UnshareFlags;
use yieldpoint_sample::{Sampler, Subject, open_sock_diag, time_wait_count};
use yieldpoint_terms::SampleSeries;
use yieldpoint_terms::clock::now_ns;

const PERIOD_NS: u64 = 100_000_000;
/// Times that missing entries are made up for.
const ATTEMPTS: u32 = 4;
/// Rows at an edge, in which everything is read.
const EDGES: usize = 20;
/// A port range serves each of these destinations anew, so that connect() never has to search.
const DESTINATIONS: u8 = 8;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Asked {
    json: bool,
    seconds: u64,
    time_wait: u64,
    threads: u64,
}

fn run() -> Result<(), Box<dyn Error>> {
    let asked = arguments()?;
    // Before any thread starts: a user namespace is for processes with a single one.
    let refused = private_network().err();
    for _ in 0..asked.threads {
        // They sleep until the process ends.
        std::thread::spawn(|| {
            loop {
                std::thread::park()
            }
        });
    }
    let listeners = (1..=DESTINATIONS)
        .map(|host| TcpListener::bind((Ipv4Addr::new(127, 0, 0, host), 0)))
        .collect::<Result<Vec<_>, _>>()?;
    // A new connection may take the port of an entry that is older than a second: made up for.
    for _ in 0..ATTEMPTS {
        let there = time_wait_count(std::process::id())?;
        fill(&listeners, asked.time_wait.saturating_sub(there))?;
    }
    let cost = measure(&listeners[0], asked.seconds)?;
    let Cost {
        rows,
        time_wait,
        share,
        mean_us,
        max_us,
        edge_us,
    } = cost;
    let Asked { threads, .. } = asked;
    if asked.json {
        let private = refused.is_none();
        println!(
            "{{\"rows\":{rows},\"time_wait\":{time_wait},\"threads\":{threads},\"private\":{private},\
             \"share_percent\":{share:.4},\"row_us_mean\":{mean_us:.1},\"row_us_max\":{max_us:.1},\
             \"edge_row_us_mean\":{edge_us:.1}}}"
        );
    } else {
        if let Some(error) = refused {
            println!("no namespace of its own ({error}); TIME_WAIT entries of others count, too");
        }
        println!(
            "{rows} rows at 10 a second, {time_wait} TIME_WAIT entries, {threads} idle threads: \
             {share:.3} % of one CPU"
        );
        println!(
            "a row costs {mean_us:.0} µs, {max_us:.0} µs at most; a row at an edge {edge_us:.0} µs"
        );
    }
    Ok(())
}

fn arguments() -> Result<Asked, Box<dyn Error>> {
    let mut asked = Asked {
        json: false,
        seconds: 20,
        time_wait: 28_000,
        threads: 8,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64, Box<dyn Error>> {
            let text = words.next().unwrap_or_default();
            text.parse()
                .map_err(|_| format!("\"{word}\": expected a whole number, got \"{text}\"").into())
        };
        match word.as_str() {
            "--json" => asked.json = true,
            "--seconds" => asked.seconds = number()?,
            "--time-wait" => asked.time_wait = number()?,
            "--threads" => asked.threads = number()?,
            _ => {
                let known = "--json, --seconds N, --time-wait N, --threads N";
                return Err(format!("\"{word}\" is unknown: expected {known}").into());
            }
        }
    }
    // TIME_WAIT lasts 60 s: in a longer measurement the entries would be gone.
    if !(2..=45).contains(&asked.seconds) {
        return Err(format!("\"--seconds\": expected 2 to 45, got {}", asked.seconds).into());
    }
    Ok(asked)
}

/// Moves this process into a network namespace of its own, and brings its loopback interface up.
fn private_network() -> std::io::Result<()> {
    // SAFETY: what makes unshare unsafe is CLONE_FILES, which is not asked for.
    #[allow(unsafe_code)]
    unsafe {
        rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
    }
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        // Number 0, NETLINK_ROUTE.
        None,
    )?;
    // rtnetlink(7): RTM_NEWLINK with an acknowledgement, interface 1 (lo), flag and mask IFF_UP.
    const RTM_NEWLINK: u32 = 16;
    const REQUEST_ACK: u32 = 0x5;
    let words = [32, RTM_NEWLINK | REQUEST_ACK << 16, 1, 0, 0, 1, 1, 1];
    let message: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 64];
    rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    // The acknowledgement is an error message of number 0.
    match i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]) {
        0 => Ok(()),
        errno => Err(std::io::Error::from_raw_os_error(-errno)),
    }
}

/// Leaves so many TIME_WAIT entries at the client's end.
fn fill(listeners: &[TcpListener], entries: u64) -> Result<(), Box<dyn Error>> {
    for i in 0..entries {
        // Below the number of listeners.
        let listener = &listeners[(i % listeners.len() as u64) as usize];
        let client = TcpStream::connect(listener.local_addr()?)?;
        let (mut target, _) = listener.accept()?;
        drop(client);
        target
            .read_exact(&mut [0])
            .err()
            .ok_or("a closed end wrote")?;
    }
    Ok(())
}

struct Cost {
    /// rows of which the cost was taken
    rows: usize,
    /// entries while it was measured, at the least
    time_wait: i64,
    /// percent of one CPU
    share: f64,
    mean_us: f64,
    max_us: f64,
    edge_us: f64,
}

/// Samples this process, which stands for client and target, by the clock.
fn measure(listener: &TcpListener, seconds: u64) -> Result<Cost, Box<dyn Error>> {
    let pid = std::process::id();
    let subject = Subject {
        client_pids: vec![pid],
        target_pid: Some(pid),
        net_pid: pid,
        client_cpus: vec![0],
        target_cpus: vec![0],
        port: Some(listener.local_addr()?.port()),
        sock_diag: Some(open_sock_diag()?),
        target_net: None,
    };
    let time_wait = time_wait_count(pid)?;
    let sampler = Sampler::start(subject, now_ns(), PERIOD_NS)?;
    std::thread::sleep(Duration::from_secs(seconds));
    for _ in 0..EDGES {
        sampler.row_now()?;
    }
    let series = sampler.finish();
    let time_wait = time_wait.min(time_wait_count(pid)?);
    // Rows by the clock, then those at an edge: the ones that were asked for, and the last.
    let by_clock = series.t_ns.len() - EDGES - 1;
    let costs = costs_ns(&series).ok_or("the sampler's CPU clock cannot be read")?;
    let (rows, edges) = costs.split_at(by_clock - 1);
    let sum = |costs: &[i64]| costs.iter().sum::<i64>() as f64;
    let span_ns = (series.t_ns[by_clock - 1] - series.t_ns[0]) as f64;
    Ok(Cost {
        rows: rows.len(),
        time_wait: i64::try_from(time_wait)?,
        share: sum(rows) / span_ns * 100.0,
        mean_us: sum(rows) / rows.len() as f64 / 1e3,
        max_us: *rows.iter().max().ok_or("no row was taken")? as f64 / 1e3,
        edge_us: sum(edges) / edges.len() as f64 / 1e3,
    })
}

/// What each row but the first cost: the CPU time since the row before.
fn costs_ns(series: &SampleSeries) -> Option<Vec<i64>> {
    let column = series.columns.get("sampler_cpu_ns")?;
    column
        .windows(2)
        .map(|pair| Some(pair[1]? - pair[0]?))
        .collect()
}
