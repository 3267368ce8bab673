//! One connection: answers its requests, and limits its times.

use super::seats::{Kind, Seat};
use super::watch::{Patience, Watch, Watched};
use crate::problem::Problem;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::TcpStream;
use tokio::sync::watch as channel;
use tokio::time::Sleep;

/// How many bytes a head may have, and how many of a body are read at once.
const BUFFER_BYTES: usize = 32 * 1024;

/// A connection that was accepted.
pub struct Connection {
    pub stream: TcpStream,
    pub from: SocketAddr,
    pub seat: Seat,
    pub patience: Patience,
    pub router: Router,
    pub stopped: channel::Receiver<bool>,
}

/// How serving a connection ends.
enum End {
    /// Everything was answered.
    Over,
    /// The client closed it, or did not speak HTTP.
    Broken,
    /// It took too long.
    Late,
    /// It made room.
    Left,
}

impl Connection {
    /// Serves it to its end.
    pub async fn serve(self) {
        let watch = self.seat.watch.clone();
        let usual = self.seat.kind == Kind::Usual;
        let answering = Answering {
            service: TowerToHyperService::new(self.router),
            watch: watch.clone(),
            from: self.from,
            usual,
        };
        let io = TokioIo::new(Watched::new(self.stream, watch.clone()));
        let mut connection = http1::Builder::new()
            .keep_alive(usual)
            .max_buf_size(BUFFER_BYTES)
            .max_header_size(BUFFER_BYTES)
            // Times are limited here: for hyper, the time between two requests belongs to the head of the second one.
            .header_read_timeout(None)
            // The header can't say a time before 1970, and hyper panics where it should.
            .auto_date_header(SystemTime::now() >= UNIX_EPOCH)
            .serve_connection(io, answering);
        let mut stopped = self.stopped;
        let end = {
            let mut stop = pin!(stopped.wait_for(|stopped| *stopped));
            let mut stopping = false;
            let mut leave = pin!(watch.told_to_leave());
            let mut clock = Clock {
                sleep: Box::pin(tokio::time::sleep(self.patience.head)),
                set_to: None,
            };
            std::future::poll_fn(|cx| {
                if !stopping && stop.as_mut().poll(cx).is_ready() {
                    stopping = true;
                    Pin::new(&mut connection).graceful_shutdown();
                }
                if let Poll::Ready(over) = connection.poll_without_shutdown(cx) {
                    return Poll::Ready(if over.is_ok() { End::Over } else { End::Broken });
                }
                if leave.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(End::Left);
                }
                clock.poll(cx, &watch, &self.patience).map(|()| End::Late)
            })
            .await
        };
        let why = match end {
            End::Over => {
                watch.answered();
                super::close(connection.into_parts().io.into_inner().into_inner()).await;
                return;
            }
            End::Broken => return,
            End::Late => "it took too long",
            End::Left => "others came",
        };
        tracing::debug!(from = %self.from, phase = ?watch.phase(), "a connection is closed: {why}");
    }
}

/// Wakes a connection that takes too long. A deadline that moves later costs nothing until the
/// earlier one has passed.
struct Clock {
    sleep: Pin<Box<Sleep>>,
    /// When it wakes, in milliseconds from the epoch.
    set_to: Option<u64>,
}

impl Clock {
    /// Ready when the time is over.
    fn poll(&mut self, cx: &mut Context<'_>, watch: &Watch, patience: &Patience) -> Poll<()> {
        while let Some(deadline) = watch.deadline(patience) {
            if self.set_to.is_none_or(|set_to| deadline < set_to) {
                self.set_to = Some(deadline);
                self.sleep.as_mut().reset(watch.instant(deadline));
            }
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.set_to = None;
            if watch.now() >= deadline {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

/// Answers the requests of a connection.
struct Answering {
    service: TowerToHyperService<Router>,
    watch: Arc<Watch>,
    from: SocketAddr,
    usual: bool,
}

type Answer = Pin<Box<dyn Future<Output = Result<hyper::Response<Outgoing>, Infallible>> + Send>>;

impl hyper::service::Service<hyper::Request<Incoming>> for Answering {
    type Response = hyper::Response<Outgoing>;
    type Error = Infallible;
    type Future = Answer;

    fn call(&self, request: hyper::Request<Incoming>) -> Answer {
        let watch = self.watch.clone();
        watch.asked(!request.body().is_end_stream());
        let served = self.usual || matches!(request.uri().path(), "/healthz" | "/readyz");
        let asked = served.then(|| {
            let mut request = request.map(|body| Arriving {
                body,
                watch: watch.clone(),
            });
            request.extensions_mut().insert(ConnectInfo(self.from));
            request.extensions_mut().insert(watch.clone());
            hyper::service::Service::call(&self.service, request)
        });
        Box::pin(async move {
            let mut response = match asked {
                Some(answer) => answer.await?,
                None => too_many(),
            };
            if !watch.is_body_read() {
                // Unread bytes can't be distinguished from another request.
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok(response.map(|body| Outgoing {
                body,
                _answered: Answered(watch),
            }))
        })
    }
}

fn too_many() -> Response {
    let detail = "the server has as many connections as it takes (`server.connections`): try again later";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "TooManyConnections", detail).into_response()
}

/// The body of a request.
struct Arriving {
    body: Incoming,
    watch: Arc<Watch>,
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.watch.body_read();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer. The answer is complete when this is dropped.
struct Outgoing {
    body: Body,
    _answered: Answered,
}

struct Answered(Arc<Watch>);

impl Drop for Answered {
    fn drop(&mut self) {
        self.0.answered();
    }
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
