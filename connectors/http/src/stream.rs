//! A connection that can be cut by code that inspects the received data.

use crate::excess::TooManyAnswers;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::net::TcpStream;

/// A connection, with TLS or without.
pub(crate) struct Stream {
    inner: Inner,
    cut: Cut,
}

type Inner = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Cuts a connection: every later read fails. It is in the extras of the connection.
#[derive(Clone, Default)]
pub(crate) struct Cut(Arc<OnceLock<TooManyAnswers>>);

impl Cut {
    pub(crate) fn because(&self, reason: TooManyAnswers) {
        // The first reason counts.
        let _ = self.0.set(reason);
    }
}

impl Stream {
    pub(crate) fn new(inner: Inner) -> Self {
        Self {
            inner,
            cut: Cut::default(),
        }
    }

    fn inner(self: Pin<&mut Self>) -> Pin<&mut Inner> {
        Pin::new(&mut self.get_mut().inner)
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.inner.connected().extra(self.cut.clone())
    }
}

impl Read for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if let Some(reason) = self.cut.0.get() {
            return Poll::Ready(Err(io::Error::other(*reason)));
        }
        self.inner().poll_read(context, buffer)
    }
}

impl Write for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.inner().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write_vectored(context, slices)
    }
}
