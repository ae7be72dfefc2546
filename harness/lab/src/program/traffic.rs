//! The probe's program: a few bytes over 127.0.0.1 and back.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;

pub fn exchange() -> ExitCode {
    match try_exchange() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("traffic over 127.0.0.1: {e}");
            ExitCode::FAILURE
        }
    }
}

fn try_exchange() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // The backlog takes the connection, so that one thread is enough for both ends.
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.write_all(b"ping")?;
    let mut got = [0; 4];
    far.read_exact(&mut got)?;
    match &got {
        b"ping" => Ok(()),
        other => Err(io::Error::other(format!(
            "expected \"ping\", got {other:?}"
        ))),
    }
}
