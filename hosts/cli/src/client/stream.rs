//! Follows a history event by event, across restarts of the server.

use super::{Answer, Client, Problem, SILENCE, root, unreached};
use crate::exit::Exit;
use reqwest::Method;
use starbridge_flow::value::Object;
use starbridge_node::escaping::escaped;
use std::time::Duration;

/// How often a server that went away is asked again, which limits how long it is waited for.
const PATIENCE: u32 = 600;
const PAUSE: Duration = Duration::from_millis(500);

/// A block of a stream.
enum Piece {
    /// An event of the history: its number and its text.
    Event(u64, String),
    /// The execution has ended, and there is no more.
    End,
    /// Nothing of interest.
    Other,
}

/// Receives the events of a history.
type Followed<'a> = dyn FnMut(&str, &Object) -> Result<(), Exit> + 'a;

/// How far a follower has come.
struct StreamCursor {
    next: u64,
    /// Whether the server has answered before.
    met: bool,
}

/// How a connection ended.
enum Broken {
    Ended,
    Stopped(Exit),
    Away(Away),
}

/// Why a server sends nothing more.
enum Away {
    Refused(Problem),
    Lost(String),
}

impl Away {
    /// Whether it would give the same answer again.
    fn is_final(&self) -> bool {
        matches!(self, Self::Refused(problem) if problem.status != 503)
    }

    /// The note when it is asked again.
    fn note(&self) -> String {
        match self {
            Self::Refused(problem) if problem.code() != "Stopping" => {
                let why = problem.detail().map_or_else(
                    || format!("it answers with status {}", problem.status),
                    |detail| escaped(detail).into_owned(),
                );
                format!("the server tells nothing more: {why}")
            }
            _ => "the server went away: waiting for it to come back".to_owned(),
        }
    }

    /// The message when this is the end.
    fn say(&self, client: &Client) -> Exit {
        match self {
            Self::Refused(problem) => client.say(problem),
            Self::Lost(why) => unreachable(client, why),
        }
    }
}

/// Follows the history of an execution from an event on until it has ended, even if the connection
/// breaks meanwhile.
pub fn follow(client: &Client, execution: &str, from: u64, see: &mut Followed<'_>) -> Result<(), Exit> {
    let mut place = StreamCursor {
        next: from.max(1),
        met: false,
    };
    let mut attempts = 0;
    client.until_interrupted(async {
        loop {
            let before = place.next;
            let away = match listen(client, execution, &mut place, see).await {
                Broken::Ended => return Ok(()),
                Broken::Stopped(exit) => return Err(exit),
                Broken::Away(away) => away,
            };
            // It was never there: the address may be wrong, or there is no room.
            if !place.met || away.is_final() {
                return Err(away.say(client));
            }
            if place.next > before {
                attempts = 0;
            }
            client.remote.servers.turn();
            if attempts == 0 {
                client.output.note(&away.note());
            }
            attempts += 1;
            if attempts > PATIENCE {
                return Err(away.say(client));
            }
            tokio::time::sleep(PAUSE).await;
        }
    })?
}

fn unreachable(client: &Client, why: &str) -> Exit {
    let server = client.remote.address();
    let help = "`starbridge serve` starts a server; `--server` or STARBRIDGE_SERVER names another one";
    unreached(client.output, &format!("can't reach {server}: {why}"), help)
}

/// One connection.
async fn listen(client: &Client, execution: &str, place: &mut StreamCursor, see: &mut Followed<'_>) -> Broken {
    let request = match client.request(Method::GET, &["executions", execution, "history"], &[]) {
        Ok(request) => request,
        Err(exit) => return Broken::Stopped(exit),
    };
    let request = request
        .header("accept", "text/event-stream")
        .header("last-event-id", place.next.saturating_sub(1).to_string());
    let mut response = match request.send().await {
        Ok(response) => response,
        Err(error) => return Broken::Away(Away::Lost(root(&error))),
    };
    let status = response.status().as_u16();
    if status != 200 {
        let text = response.text().await.unwrap_or_default();
        return Broken::Away(Away::Refused(Problem::read(&Answer { status, text })));
    }
    place.met = true;
    let mut buffer = Vec::new();
    loop {
        let chunk = match tokio::time::timeout(SILENCE, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return Broken::Away(Away::Lost("it closed the connection".to_owned())),
            Ok(Err(error)) => return Broken::Away(Away::Lost(root(&error))),
            Err(_) => return Broken::Away(Away::Lost("it fell silent".to_owned())),
        };
        buffer.extend_from_slice(&chunk);
        while let Some(end) = buffer.windows(2).position(|two| two == b"\n\n") {
            let block: Vec<u8> = buffer.drain(..end + 2).collect();
            match read(&String::from_utf8_lossy(&block)) {
                Piece::End => return Broken::Ended,
                Piece::Other => {}
                Piece::Event(number, text) => {
                    let event: Object = serde_json::from_str(&text).unwrap_or_default();
                    if let Err(exit) = see(&text, &event) {
                        return Broken::Stopped(exit);
                    }
                    place.next = number + 1;
                }
            }
        }
    }
}

/// Reads a block of an event stream.
fn read(block: &str) -> Piece {
    let (mut number, mut kind, mut data) = (None, "", String::new());
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => number = value.parse().ok(),
            "event" => kind = value,
            "data" => {
                if !data.is_empty() {
                    data.push('\n');
                }
                data.push_str(value);
            }
            _ => {}
        }
    }
    match (kind, number) {
        ("end", _) => Piece::End,
        ("", Some(number)) => Piece::Event(number, data),
        _ => Piece::Other,
    }
}
