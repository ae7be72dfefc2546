//! A folder served from memory.

use std::collections::BTreeMap;

use yieldpoint_protocol::FromProgram;

use crate::client::{Client, Response};
use crate::program::{Program, text};

fn ask(client: &mut Client, method: &str, path: &str, headers: &str) -> Response {
    client.send(&format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n"
    ));
    let mut response = client.head();
    // What has no body is followed by the next head, or the next answer would be nonsense.
    if method != "HEAD" && response.status != 304 {
        response.body = client.body(&response);
    }
    response
}

#[test]
fn files_are_what_an_nginx_user_expects() {
    let dir = tempfile::tempdir().unwrap();
    let www = dir.path().join("www");
    std::fs::create_dir_all(www.join("sub")).unwrap();
    std::fs::write(dir.path().join("secret.txt"), "secret").unwrap();
    std::fs::write(www.join("index.html"), "<p>hello</p>").unwrap();
    std::fs::write(www.join("sub/index.html"), "<p>below</p>").unwrap();
    let large: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
    std::fs::write(www.join("large.png"), &large).unwrap();

    let folder = text(www.to_str().unwrap());
    let (mut target, address) = Program::serving(&[("files", folder)]);
    // Gone from the disk, still in memory.
    std::fs::remove_dir_all(&www).unwrap();
    let mut client = Client::connect(address);
    let index = ask(&mut client, "GET", "/", "");
    assert_eq!((index.status, &index.body[..]), (200, &b"<p>hello</p>"[..]));
    assert_eq!(index.header("content-type"), "text/html");
    let (etag, modified) = (index.header("etag"), index.header("last-modified"));
    assert!(etag.starts_with('"') && etag.ends_with("-c\""), "{etag}");

    let tag = format!("If-None-Match: {etag}\r\n");
    let since = format!("If-Modified-Since: {modified}\r\n");
    // each row: method, path, headers, status, body
    let table: [(&str, &str, &str, u16, &[u8]); 15] = [
        ("GET", "/index.html?a=b", "", 200, b"<p>hello</p>"),
        ("GET", "/sub/", "", 200, b"<p>below</p>"),
        ("GET", "/", &tag, 304, b""),
        ("GET", "/", &since, 304, b""),
        ("HEAD", "/", &tag, 304, b""),
        (
            "GET",
            "/sub/",
            "If-None-Match: \"x\"\r\n",
            200,
            b"<p>below</p>",
        ),
        ("GET", "/large.png", "", 200, &large),
        ("HEAD", "/large.png", "", 200, b""),
        (
            "GET",
            "/large.png",
            "Range: bytes=10-99\r\n",
            206,
            &large[10..100],
        ),
        (
            "GET",
            "/large.png",
            "Range: bytes=-50000\r\n",
            206,
            &large[50_000..],
        ),
        ("POST", "/", "Content-Length: 0\r\n", 200, b"<p>hello</p>"),
        ("HEAD", "/nothing", "", 404, b""),
        ("GET", "/", "", 200, b"<p>hello</p>"),
        ("GET", "/%73ub/", "", 200, b"<p>below</p>"),
        ("GET", "/", "Range: bytes=5-1,7-8\r\n", 200, b"<p>hello</p>"),
    ];
    for (method, path, headers, status, body) in table {
        let got = ask(&mut client, method, path, headers);
        assert_eq!(got.status, status, "{method} {path} {headers}");
        // Not assert_eq, which would print a large one.
        assert!(got.body == body, "{method} {path} {headers}");
    }
    let beyond = ask(&mut client, "GET", "/", "Range: bytes=12-\r\n");
    assert_eq!(
        (beyond.status, beyond.header("content-range")),
        (416, "bytes */12")
    );
    let folder = ask(&mut client, "GET", "/sub", "");
    assert_eq!((folder.status, folder.header("location")), (301, "/sub/"));
    let ways_out = [
        "/../secret.txt",
        "/sub/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/sub/..%5c..%5csecret.txt",
        "//etc/passwd",
    ];
    for path in ways_out {
        let got = ask(&mut client, "GET", path, "");
        assert_eq!(got.status, 404, "{path}");
        assert!(!got.body.windows(6).any(|w| w == b"secret"), "{path}");
    }
    drop(client);
    let t = target.testimony();
    assert_eq!(
        t.responses,
        BTreeMap::from([(200, 10), (206, 2), (301, 1), (304, 3), (404, 7), (416, 1)])
    );
    assert_eq!((t.requests, t.reset), (24, 0));
    target.bye();
}

#[test]
fn a_folder_that_cannot_be_served_is_told_before_ready() {
    let mut program = Program::spawn();
    let FromProgram::Failed { reason } = program.job(&[("files", text("/nowhere/at/all"))]) else {
        panic!("failed");
    };
    assert!(
        reason.contains("knob \"files\"") && reason.contains("/nowhere/at/all"),
        "{reason}"
    );
    assert!(!program.ended().success());
}
