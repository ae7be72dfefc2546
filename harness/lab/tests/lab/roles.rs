//! What this executable does when a test starts it again.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};

use yieldpoint_lab::{Lab, LabSpec, Link, Mode, Network, Side, Spawn, probe};
use yieldpoint_terms::clock::now_ns;

use crate::tools::{self, PROGRAM, Talk, namespace};

/// Which role.
pub const ROLE: &str = "YIELDPOINT_LAB_TEST_ROLE";
/// Mode of the lab, and the marker of its processes.
pub const MODE: &str = "YIELDPOINT_LAB_TEST_MODE";
pub const MARKER: &str = "YIELDPOINT_LAB_TEST_MARKER";
/// Whether the runner's lab has two network namespaces: "veth" or "loopback".
pub const NETWORK: &str = "YIELDPOINT_LAB_TEST_NETWORK";
/// Where to listen or connect; default: 127.0.0.1.
pub const ADDRESS: &str = "YIELDPOINT_LAB_TEST_ADDRESS";
/// How many bytes to send.
pub const BYTES: &str = "YIELDPOINT_LAB_TEST_BYTES";

pub fn play(role: &str) {
    match role {
        "listen" => listen(),
        "connect" => connect(),
        "exchange" => {
            println!("start {}", now_ns());
            exchange(TcpStream::connect(address()).unwrap());
        }
        "exchange-listen" => {
            let listener = TcpListener::bind(address()).unwrap();
            println!("listening");
            exchange(listener.accept().unwrap().0);
        }
        "runner" => runner(),
        "probe" => println!("{}", probe(&tools::program())),
        other => panic!("no role {other:?}"),
    }
}

/// This executable in a role, inside a lab.
pub fn spawn_as(role: &str, name: &str) -> Spawn {
    let exe = std::env::current_exe().unwrap();
    let program = tools::program();
    Spawn {
        env: tools::owned(&[(ROLE, role), (PROGRAM, program.to_str().unwrap())]),
        ..Spawn::new(name, [exe.to_str().unwrap()])
    }
}

/// The port that both of two labs want.
pub const PORT: u16 = 8080;

fn listen() {
    match TcpListener::bind(address()) {
        Ok(_listener) => {
            println!("listening");
            until_closed();
        }
        Err(e) => println!("refused: {e}"),
    }
}

fn address() -> (Ipv4Addr, u16) {
    let address = std::env::var(ADDRESS).map(|a| a.parse().unwrap());
    (address.unwrap_or(Ipv4Addr::LOCALHOST), PORT)
}

fn connect() {
    match TcpStream::connect(address()) {
        Ok(_) => println!("connected"),
        Err(e) => println!("refused: {e}"),
    }
}

/// Sends so many bytes and an end of file, and reads to the other's; tells bytes and times.
fn exchange(mut stream: TcpStream) {
    let bytes: usize = std::env::var(BYTES).unwrap().parse().unwrap();
    stream.write_all(&vec![0; bytes]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let received = std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
    println!("received {received}\nend {}", now_ns());
}

fn until_closed() {
    let mut rest = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut rest);
}

/// Brings a lab up with stubborn processes, prints the pids of guard and init and the network
/// namespaces of client and target, and takes it down at the end of its input.
fn runner() {
    let var = |name| std::env::var(name).unwrap();
    let mode = Mode::from_word(&var(MODE)).unwrap();
    let network = match &*var(NETWORK) {
        "veth" => Network::Veth(Link::default()),
        _ => Network::Loopback,
    };
    let spec = LabSpec {
        network,
        ..tools::spec(mode, &[])
    };
    let mut lab = Lab::up(&spec).unwrap();
    let script = tools::stubborn(&var(MARKER));
    let stubborn = Spawn {
        side: Side::Target,
        ..tools::sh("stubborn", &script)
    };
    let mut stubborn = Talk::spawn(&mut lab, &stubborn).unwrap();
    stubborn.hear(&["child\n", "grandchild\n"]);
    let client = namespace(lab.init_pid(), "net").unwrap();
    let target = namespace(stubborn.process.pid, "net").unwrap();
    assert_eq!(client == target, network == Network::Loopback);
    let (guard, init) = (lab.guard_pid(), lab.init_pid());
    println!("{guard} {init} {client} {target}");
    std::io::stdout().flush().unwrap();
    until_closed();
    lab.down().unwrap();
}
