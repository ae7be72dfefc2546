//! A raw client: bytes out, responses in.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::program::PATIENCE;

pub const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
pub const GET_CLOSE: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

pub struct Client {
    from: BufReader<TcpStream>,
    /// bytes of the responses read so far
    pub bytes: u64,
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

impl Client {
    pub fn connect(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            from: BufReader::new(stream),
            bytes: 0,
        }
    }

    pub fn stream(&self) -> &TcpStream {
        self.from.get_ref()
    }

    pub fn send(&mut self, text: &str) {
        self.from.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// One response of a request that was not HEAD.
    pub fn response(&mut self) -> Response {
        let mut response = self.head();
        response.body = self.body(&response);
        response
    }

    /// The body that follows a head.
    pub fn body(&mut self, head: &Response) -> Vec<u8> {
        let length: usize = head.header("content-length").parse().unwrap();
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).unwrap();
        self.bytes += length as u64;
        body
    }

    /// Reads what is there, at least one byte and at most `most`; says how many.
    pub fn some(&mut self, most: usize) -> usize {
        let n = self.from.read(&mut vec![0; most]).unwrap();
        assert!(n > 0, "the connection has ended");
        self.bytes += n as u64;
        n
    }

    /// A response's head.
    pub fn head(&mut self) -> Response {
        let mut line = || {
            let mut line = String::new();
            let n = self.from.read_line(&mut line).unwrap();
            assert!(line.ends_with("\r\n"), "a whole line, got {line:?}");
            self.bytes += n as u64;
            line.trim_end().to_owned()
        };
        let first = line();
        let status = first.strip_prefix("HTTP/1.1 ").unwrap()[..3]
            .parse()
            .unwrap();
        let mut headers = BTreeMap::new();
        loop {
            let text = line();
            if text.is_empty() {
                return Response {
                    status,
                    headers,
                    body: Vec::new(),
                };
            }
            let (name, value) = text.split_once(": ").unwrap();
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
    }

    pub fn get(&mut self) -> Response {
        self.send(GET);
        self.response()
    }

    /// The target's end-of-file comes, without a reset and without another byte.
    pub fn expect_end(&mut self) {
        let mut rest = Vec::new();
        self.from.read_to_end(&mut rest).unwrap();
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }
}
