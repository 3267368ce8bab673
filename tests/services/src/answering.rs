//! A server that answers as a test says: for what no stand-in answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request as it was heard.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The request line and the headers.
    pub head: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Heard {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub enum Said {
    /// An answer: status, headers, body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// No answer: the connection is closed.
    Nothing,
}

type Answer = dyn Fn(&Heard) -> Said + Send + Sync;

/// A server on a free port of the loopback. It is gone when this is dropped; answers under way are not waited for.
#[derive(Debug)]
pub struct Answering {
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Answering {
    /// A server that answers so. Each connection has a thread: an answer may take its time.
    pub fn start(answer: impl Fn(&Heard) -> Said + Send + Sync + 'static) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let (answer, ended): (Arc<Answer>, _) = (Arc::new(answer), over.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let answer = answer.clone();
                // No one needs to know of a broken connection.
                std::thread::spawn(move || drop(serve(stream, answer.as_ref())));
            }
        });
        Ok(Self { address, over })
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // It waits for a connection, and sees then that it is over.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(mut stream: TcpStream, answer: &Answer) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let mut heard = Heard { head, body: Vec::new() };
        let length = heard.header("content-length").and_then(|length| length.parse().ok());
        heard.body.resize(length.unwrap_or(0), 0);
        reader.read_exact(&mut heard.body)?;
        let Said::Answer(status, headers, body) = answer(&heard) else {
            return Ok(());
        };
        let mut text = format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(&body);
        stream.write_all(text.as_bytes())?;
    }
}
